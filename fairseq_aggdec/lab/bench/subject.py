"""What a benchmark decodes, as plain data that another process can receive."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from fairseq.data import data_utils

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.generation.modes import BLOCK_MODEL, SMALL_MODEL
from fairseq_aggdec.lab.bench import random_models
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.search_settings import (
    OTHER_OPTIONS,
    SOURCE_OPTIONS,
    given_settings,
)
from fairseq_aggdec.models.sizes import SIZES
from fairseq_aggdec.tasks import loading
from fairseq_aggdec.tasks.hub_translation import TemplatedDataset

_RANDOM_SENTENCES = 16
_RANDOM_BLOCK = 25  # block size k of papers/000


@dataclass(frozen=True)
class OracleSettings:
    """Quality of the drafts for a random model."""

    edit_ratio: float
    """of `iad` and `iad++`: edits divided by tokens"""
    accepted: float
    """of modes with a drafter: mean accepted tokens, if as many tokens as possible are drafted"""


@dataclass(frozen=True)
class Subject:
    """The checkpoints, sentences and options of a benchmark."""

    path: str
    data: str
    sentences: Sequence[Sequence[int]]
    """sources as token ids, EOS included"""
    source_lang: str | None = None
    target_lang: str | None = None
    drafter_path: str | None = None
    block_size: int = 0
    device: str = "cpu"
    search: Mapping[str, Any] = field(default_factory=dict)
    """options of the search and of reading the sources that differ from the defaults, see `given_settings`"""
    oracle: OracleSettings | None = None
    """how to make drafts for a random model; None for a trained one"""
    small_drafter: str | None = None
    """what drafts for `speculative`, in place of `drafter_path`"""
    keep: str | None = None
    """folder for models converted for other programs; None for a temporary one"""
    task: str = "translation"
    """fairseq's name of the task"""
    draft_lines: Sequence[str] = ()
    """for each sentence, subwords that `iad` copies in place of the source; none: it copies the source"""
    of_split: int = 0
    """sentences of the whole split; 0 for a random model"""
    name: str = ""
    """the split or the random model in words, for the title of a report"""

    @property
    def generation(self) -> dict[str, Any]:
        """fairseq's generation options."""
        return {
            name: value
            for name, value in self.search.items()
            if name not in OTHER_OPTIONS
        }

    @property
    def block_ngrams(self) -> bool:
        """Whether --block-ngrams is on."""
        return bool(self.search.get("block_ngrams"))

    @property
    def title(self) -> str:
        """What is decoded, in words."""
        return f"{self.name}, {len(self.sentences)} sentences, {self.device}"


def check_device(device: str) -> None:
    """Raise `AggdecError` where there is no GPU."""
    if device == "cuda" and not torch.cuda.is_available():
        raise AggdecError(
            "--device cuda: PyTorch finds no CUDA device; check nvidia-smi, or use --device cpu"
        )


@contextmanager
def chosen_subject(
    args: Any, modes: Sequence[ModeSpec], sentences: int | None = None
) -> Iterator[Subject]:
    """The subject of `aggdec bench` or `verify`; a random model is in a temporary folder, where --keep names none.

    `modes`: all modes, for which a random model gets drafters; `sentences`: the most, where --limit does not say it.
    """
    check_device(args.device)  # before a random model is written
    if not args.random_model:
        yield read_subject(args, sentences)[0]
        return
    with TemporaryDirectory(prefix="aggdec-") as folder:
        yield _random_subject(args, modes, Path(folder), sentences or _RANDOM_SENTENCES)


def read_subject(args: Any, sentences: int | None = None) -> tuple[Subject, Any]:
    """Read the first sentences of a split; returns the subject and the task that has loaded the split.

    Args:
        args: the command's options: `data`, `path`, `drafter_path`, `gen_subset`, `limit`, `source_lang`,
            `target_lang`, `device` and, where the command has them, `task`, `draft_file`, `block_size` and those of
            `given_settings`.
        sentences: see `chosen_subject`.

    Raises:
        AggdecError: the data or the checkpoint cannot be used.
    """
    search = given_settings(args)
    limit = args.limit or sentences
    of_task = {name: search[name] for name in SOURCE_OPTIONS if name in search}
    task_name = getattr(args, "task", "translation")
    task, _ = loading.load(
        args.path,
        args.data,
        args.source_lang,
        args.target_lang,
        task_name=task_name,
        **of_task,
    )
    # the split's sources
    if task_name == "translation":
        task.load_dataset(args.gen_subset)
        sources = task.dataset(args.gen_subset).src
        if isinstance(sources, TemplatedDataset):
            sources = sources.dataset  # texts, to which it adds the template
    else:
        # the data set of the task would have languages' tokens, which it adds to the sentences of a batch, too
        sources = _raw_sources(Path(args.data), args.gen_subset, task, task_name)
    longest = of_task.get("max_source_positions", math.inf)
    for sentence, size in enumerate(sources.sizes[:limit].tolist()):
        if size > longest:  # fairseq-generate refuses it, too
            raise AggdecError(
                f"sentence {sentence} has {size} tokens, more than --max-source-positions {longest}: add "
                "--truncate-source, or raise it"
            )
    # a draft for each of them
    draft_file = getattr(args, "draft_file", None)
    drafts = read_text_lines(draft_file) if draft_file else []
    if draft_file and len(drafts) != len(sources):
        raise AggdecError(
            f"--draft-file {draft_file}: has {len(drafts)} lines, and the split {len(sources)} sentences"
        )
    source_lang, target_lang = task.languages
    subject = Subject(
        path=args.path,
        data=args.data,
        sentences=[sources[index].tolist() for index in range(len(sources))[:limit]],
        source_lang=source_lang,
        target_lang=target_lang,
        task=task_name,
        of_split=len(sources),
        draft_lines=drafts[:limit],
        drafter_path=args.drafter_path,
        block_size=getattr(args, "block_size", None) or 0,
        device=args.device,
        search=search,
        name=f"{args.gen_subset} of {args.data} by {args.path}",
    )
    return subject, task


def _raw_sources(folder: Path, split: str, task: Any, task_name: str) -> Any:
    """The source side of a split as fairseq-preprocess wrote it."""
    source, target = task.languages
    if task.source_dictionary is None:
        raise AggdecError(
            f"--task {task_name}: its source is no text; compare two runs of fairseq-generate instead"
        )
    for pair in (f"{source}-{target}", f"{target}-{source}"):
        path = folder / f"{split}.{pair}.{source}"
        found = data_utils.load_indexed_dataset(str(path), task.source_dictionary)
        if found is not None:
            return found
    raise AggdecError(
        f"{path}: no such split; check the data folder, --gen-subset, --source-lang and --target-lang"
    )


def _random_subject(
    args: Any, modes: Sequence[ModeSpec], folder: Path, sentences: int
) -> Subject:
    """Write the model of --random-model, and a drafter if a mode needs one; draw random sentences."""
    if args.keep:
        folder = args.keep / f"{args.random_model}-{args.trained_in}"
    drafters = {mode.row.drafter for mode in modes}
    block_size = args.block_size or _RANDOM_BLOCK
    model = random_models.write_random_model(
        folder,
        SIZES[args.random_model],
        args.drafter_layers if BLOCK_MODEL in drafters else 0,
        block_size,
        trained_in=torch.float16 if args.trained_in == "fp16" else torch.float32,
        small_layers=args.drafter_layers if SMALL_MODEL in drafters else 0,
    )
    return Subject(
        path=str(model.checkpoint),
        data=str(folder),
        sentences=random_models.random_sentences(args.limit or sentences, args.length),
        source_lang=random_models.SOURCE,
        target_lang=random_models.TARGET,
        drafter_path=None if model.drafter is None else str(model.drafter),
        small_drafter=None if model.small is None else str(model.small),
        block_size=block_size if {BLOCK_MODEL, SMALL_MODEL} & drafters else 0,
        device=args.device,
        search={"min_len": args.length, "max_len_a": 0, "max_len_b": args.length},
        oracle=OracleSettings(args.edit_ratio, args.accepted),
        keep=str(folder),
        name=f"random {args.random_model} model, weights of {args.trained_in}",
    )
