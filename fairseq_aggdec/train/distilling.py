"""Sequence-level distillation: training targets written by a teacher (papers/000 §3.2.1, §3.2.2)."""

import json
import logging
import math
import shutil
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.ngram_repeat_block import is_cuda_extension_usable

import fairseq_aggdec
from fairseq_aggdec.bulk.batches import BatchPlan, BatchShard, plan_batches
from fairseq_aggdec.bulk.data_bin import DataBin, Side, Tokens
from fairseq_aggdec.bulk.folder import Decoded, ShardFolder
from fairseq_aggdec.bulk.running import (
    decode_shards,
    device_of_environment,
    rank_of_environment,
)
from fairseq_aggdec.bulk.settings import MAX_TOKENS, SHARD_SENTENCES
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import fingerprints, folder_written_whole
from fairseq_aggdec.generation.modes import BEAM
from fairseq_aggdec.generation.options import Decoding, SearchOptions
from fairseq_aggdec.structured_files import read
from fairseq_aggdec.tasks.loading import batches_of, load

logger = logging.getLogger(__name__)

RECORD = "distillation.json"
"""the file that records how the folder was made"""
SKIPPED = "distillation.skipped.tsv"
"""the file with a line for each skipped sentence: split, index, count of source tokens"""


@dataclass(frozen=True)
class Teacher:
    """A model, or an ensemble, that translates batches of sources; it is loaded for the first one."""

    path: str
    """a checkpoint, or several joined by `:`"""
    data: DataBin
    """the folder with the dictionaries that they were trained with, and the sources"""
    search: SearchOptions = field(default_factory=SearchOptions)
    decoding: str = BEAM
    """a mode of the plugin"""
    precision: str = "fp32"
    cpu: bool = False
    """use no GPU"""
    threads: int | None = None
    """None: as many as PyTorch takes"""

    @cached_property
    def _loaded(self) -> tuple[Any, list[Any]]:
        """The task, whose search by this plugin bans repeated n-grams everywhere, and the models.

        Raises `AggdecError` where a checkpoint cannot be read or does not fit, or fairseq's search would ban nothing.
        """
        decoding = Decoding(self.decoding, block_ngrams=True)
        if (
            decoding.row.is_fairseqs
            and self.search.no_repeat_ngram_size
            and not is_cuda_extension_usable()
        ):
            raise AggdecError(
                "--no-repeat-ngram-size: fairseq's search ignores it without its CUDA extension, and the targets would "
                "repeat themselves; add --decoding aggressive-beam"
            )
        fairseq_aggdec.register()  # in a worker's process nothing else has
        if self.threads:
            torch.set_num_threads(self.threads)
        return load(
            self.path,
            str(self.data.folder),
            self.data.source_lang,
            self.data.target_lang,
            device_of_environment(self.cpu, self.precision),
            self.precision,
            decoding=decoding,
        )

    @property
    def longest_source(self) -> int:
        """The most tokens of a text that all models take, EOS included."""
        task, models = self._loaded
        return min(int(model.max_positions()[0]) for model in models) - task.added

    def decode(self, shard: BatchShard) -> Decoded:
        """The targets of a shard's sentences: token ids, EOS included, joined by spaces."""
        sources = self._source(shard.split)
        outputs: list[str] = []
        for batch in shard.batches:
            targets = self.translate(batch, [sources[sentence] for sentence in batch])
            outputs += (" ".join(map(str, target.tolist())) for target in targets)
        return Decoded(outputs)

    @cached_property
    def _source(self) -> Callable[[str], Side]:
        """The sources of a split, kept: fairseq reads a whole file when it opens it."""
        return cache(self.data.source)

    @torch.inference_mode()
    def translate(
        self, sentences: Sequence[int], sources: Sequence[Tokens]
    ) -> list[Tokens]:
        """The tokens, EOS included, of the best hypothesis for each source, which depends on no other batch.

        `sentences`: their ids, for error messages. Raises `AggdecError` where all scores of a sentence were NaN.
        """
        task, models = self._loaded
        # a new one, because what a draft schedule has learnt from other batches decides which near-ties round up
        generator = task.build_generator(models, Namespace(**asdict(self.search)))
        (sample,) = batches_of(
            task, [torch.from_numpy(source) for source in sources], len(sources)
        )
        device = next(models[0].parameters()).device
        sample = utils.apply_to_sample(lambda tensor: tensor.to(device), sample)
        decoded = task.inference_step(generator, models, sample)
        # each generator would repeat what the first one has said
        for name in ("tasks", "generation"):
            logging.getLogger(f"fairseq_aggdec.{name}").setLevel(logging.ERROR)
        # data has texts alone
        forced = 0 if task.form is None else len(task.form.forced)
        targets: dict[int, Tokens] = {}
        for place, hypotheses in zip(sample["id"].tolist(), decoded, strict=True):
            if not hypotheses:
                raise AggdecError(
                    f"sentence {sentences[place]}: the model gives no finite score; try without --fp16"
                )
            targets[place] = hypotheses[0]["tokens"][forced:].cpu().numpy()
        return [target for _, target in sorted(targets.items())]


def distil(
    teacher: Teacher,
    output: Path,
    splits: Sequence[str],
    workers: int = 1,
    max_tokens: int = MAX_TOKENS,
    batch_size: int | None = None,
    max_source_len: int | None = None,
    shard_sentences: int = SHARD_SENTENCES,
    until: float = math.inf,
) -> None:
    """Decode the shards that are not finished, and write a data folder with the teacher's targets when all are.

    Args:
        teacher: the teacher, not yet loaded, with the original data.
        output: the folder to make; shards are kept beside it, in `OUTPUT.shards`.
        splits: the splits to distil.
        workers: how many processes.
        max_tokens: the most source tokens of a batch, padding included.
        batch_size: the most sentences of a batch; None: no limit.
        max_source_len: the most tokens of a source, EOS included; longer ones are skipped. None: the models' limit.
        shard_sentences: the sentences of a shard.
        until: when no further shard is decoded, on the clock of `time.monotonic`; the rest is skipped.

    Raises:
        AggdecError: a file cannot be used, or was made with other settings.
    """
    # with workers, each loads the teacher; this process asks it for the longest source alone
    loaded = teacher if workers == 1 else replace(teacher, cpu=True, precision="fp32")
    longest = min(loaded.longest_source, max_source_len or loaded.longest_source)
    made: dict[str, Any] = {
        "teacher": fingerprints(teacher.path),
        "longest_source": longest,
        "max_tokens": max_tokens,
        "batch_size": batch_size,
        "precision": teacher.precision,
        "decoding": teacher.decoding,
    }
    search = asdict(teacher.search)
    origins = {
        split: {"data": teacher.data.fingerprint(split), **made, "search": search}
        for split in splits
    }
    if _is_there(output, origins):
        return
    # the batches of all splits, and the folder of what is decoded
    plans: dict[str, BatchPlan] = {}
    shards: list[BatchShard] = []
    for split in splits:
        sources = teacher.data.source(split)
        plan = plan_batches(sources, longest, max_tokens, batch_size)
        plans[split] = plan
        shards += plan.shards(split, shard_sentences)
        logger.info(
            f"{split}: {len(sources):,} sentences, {sum(map(len, plan.batches)):,} different sources in "
            f"{len(plan.batches):,} batches; {len(plan.skipped):,} are empty or longer than {longest} tokens and are "
            "skipped"
        )
    folder = ShardFolder(
        output.with_name(output.name + ".shards"),
        {**made, **search, "shard_sentences": shard_sentences},
        {split: json.dumps(origins[split]["data"], sort_keys=True) for split in splits},
    )
    # decoding: something of each split always
    rank, ranks = rank_of_environment()
    if until < math.inf:
        first = [shard for shard in shards if shard.number == 0]
        decode_shards(first, folder, teacher.decode, workers, "sentences")
    decode_shards(
        shards[rank::ranks], folder, teacher.decode, workers, "sentences", until
    )
    if ranks > 1:
        logger.info(
            "when all ranks have ended, start the command once more, without RANK, to put them together"
        )
        return
    # the targets in the order of the data
    found: dict[str, dict[int, Tokens]] = {split: {} for split in splits}
    for shard in filter(folder.is_finished, shards):
        for sentence, line in zip(shard.sentences, folder.read(shard), strict=True):
            found[shard.split][sentence] = np.array(line.split(), dtype=np.int32)
    targets: dict[str, list[Tokens | None]] = {}
    for split, plan in plans.items():
        targets[split] = [found[split].get(first) for first in plan.representative]
        skipped = sum(target is None for target in targets[split])
        logger.info(
            f"{split}: {len(targets[split]) - skipped:,} of {len(targets[split]):,} sentences distilled"
            + (f", {skipped:,} skipped ones left out" if skipped else "")
        )
    write_data_bin(output, teacher.data, targets, origins)
    logger.info(f"{output} is complete")


def _is_there(output: Path, origins: Mapping[str, dict[str, Any]]) -> bool:
    """Whether the folder is complete; `origins` is what its record must say of each split.

    Raises `AggdecError` where it was made in another way, or not by aggdec distill.
    """
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return False
    path = output / RECORD
    if not path.is_file():
        raise AggdecError(
            f"{output}: is there, and was not made by aggdec distill; choose another folder"
        )
    record = read(path, dict[str, Any], "delete the folder, or choose another")
    made = record["splits"]
    for entry in made.values():
        del entry["sentences"], entry["skipped"]
    if made != origins:
        raise AggdecError(
            f"{output}: is there, made in another way; delete it or choose another folder"
        )
    logger.info(f"{output} is complete")
    return True


def write_data_bin(
    folder: Path,
    data: DataBin,
    distilled: Mapping[str, Sequence[Tokens | None]],
    origins: Mapping[str, dict[str, Any]],
) -> None:
    """Write a folder, which has its name only when it is complete.

    All other splits, the dictionaries and other files of the original folder are copied. No times or machines are
    recorded: the same targets give the same bytes.

    Args:
        folder: the folder to make.
        data: the original data.
        distilled: of each distilled split the new targets; None for a sentence that the teacher skipped, which is left
            out on both sides.
        origins: of each split, for the record, how the targets were made, in JSON values.

    Raises:
        AggdecError: another process is writing the folder.
    """
    with folder_written_whole(folder) as partial:
        # what is not distilled stays
        for path in sorted(filter(Path.is_file, data.folder.iterdir())):
            split = path.name.split(".")[0]
            if split not in distilled and path.name not in (RECORD, SKIPPED):
                shutil.copyfile(path, partial / path.name)
            elif split in distilled and not path.match(f"{split}.{data.pair}.*"):
                logger.warning(
                    f"{path} is not copied: it does not fit the distilled targets"
                )
        # pairs, without the skipped ones
        written = DataBin(partial, data.source_lang, data.target_lang)
        listed: list[str] = []
        made = {}
        for split, targets in distilled.items():
            sources = data.source(split)
            kept: list[int] = []
            new: list[Tokens] = []
            for index, target in enumerate(targets):
                if target is None:
                    listed.append(f"{split}\t{index}\t{sources.sizes[index]}\n")
                else:
                    kept.append(index)
                    new.append(target)
            made[split] = {
                "sentences": len(targets),
                "skipped": len(targets) - len(new),
                **origins[split],
            }
            written.write(split, (sources[index] for index in kept), new)
        (partial / SKIPPED).write_text("".join(listed), encoding="utf-8")
        record = json.dumps({"splits": made}, indent=1, sort_keys=True)
        (partial / RECORD).write_text(f"{record}\n", encoding="utf-8")
