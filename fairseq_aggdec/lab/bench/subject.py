"""What a benchmark decodes, as plain data that another process can receive, and the runners for it."""

import argparse
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import torch
from fairseq.data import data_utils
from fairseq.models import BaseFairseqModel

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.generation.modes import AGGRESSIVE, GREEDY, SMALL_MODEL
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.lab.bench import ctranslate2_runner, nat_runner
from fairseq_aggdec.lab.bench.ctranslate2_runner import CTranslate2Runner, TranslatorProcess
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import CTRANSLATE2, CUT, Mode
from fairseq_aggdec.lab.bench.nat_runner import NatRunner
from fairseq_aggdec.lab.bench.oracle import Texts, texts_to_copy, texts_to_propose
from fairseq_aggdec.lab.bench.rounds import Runner
from fairseq_aggdec.lab.bench.search_settings import SOURCE_OPTIONS, given_settings
from fairseq_aggdec.lab.verify.differences import kept_in
from fairseq_aggdec.tasks import loading
from fairseq_aggdec.tasks.draft_file import draft_tokens


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
    """sources as token numbers, EOS included"""
    source_lang: str | None = None
    target_lang: str | None = None
    drafter_path: str | None = None
    block_size: int = 0
    device: str = "cpu"
    precision: str = "fp32"
    """precision of modes whose names do not give one"""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """fairseq's generation options"""
    block_ngrams: bool = False
    """whether --block-ngrams is on"""
    drafts: str = "auto"
    """the value of --drafts, for modes whose names do not say `+whole`"""
    oracle: OracleSettings | None = None
    """how to make drafts for a random model; None for a trained one"""
    small_drafter: str | None = None
    """what drafts for `speculative`, in place of `drafter_path`"""
    keep: str | None = None
    """folder for models converted for other programs; None for a temporary one"""
    task: str = "translation"
    """fairseq's name of the task"""
    drafts_of_own: Sequence[str] = ()
    """for each sentence, subwords that `iad` copies in place of the source; none: it copies the source"""
    of_split: int = 0
    """number of sentences of the whole split; 0 for a random model"""


def read_subject(args: argparse.Namespace) -> tuple[Subject, Any]:
    """Read the first sentences of a split; returns the subject and the task that has loaded the split.

    Args:
        args: `data`, `path`, `drafter_path`, `gen_subset`, `limit`, `source_lang`, `target_lang`, `device`,
            `precision` and, where the command has them, `task`, `draft_file`, `block_size` and those of
            `given_settings`.

    Raises:
        AggdecError: the data or the checkpoint cannot be used.
    """
    given = given_settings(args)
    of_task = {name: given.pop(name) for name in SOURCE_OPTIONS if name in given}
    block_ngrams = given.pop("block_ngrams", False)
    name = getattr(args, "task", "translation")
    task, _ = loading.load(args.path, args.data, args.source_lang, args.target_lang, task_name=name, **of_task)
    source_lang, target_lang = task.languages
    if name == "translation":
        task.load_dataset(args.gen_subset)
        sources = task.dataset(args.gen_subset).src
    else:  # its own data set would have languages' tokens, which it adds to the sentences of a batch, too
        sources = _raw_sources(args, source_lang, target_lang, task.source_dictionary)
    longest = of_task.get("max_source_positions", math.inf)
    for number, size in enumerate(sources.sizes[: args.limit].tolist()):
        if size > longest:  # fairseq-generate refuses it, too
            raise AggdecError(
                f"sentence {number} has {size} tokens, more than --max-source-positions {longest}: add "
                "--truncate-source, or raise it"
            )
    own = getattr(args, "draft_file", None)
    drafts = read_text_lines(own) if own else []
    if own and len(drafts) != len(sources):
        raise AggdecError(f"--draft-file {own}: has {len(drafts)} lines, and the split {len(sources)} sentences")
    subject = Subject(
        path=args.path,
        data=args.data,
        sentences=[sources[number].tolist() for number in range(len(sources))[: args.limit]],
        source_lang=source_lang,
        target_lang=target_lang,
        task=name,
        of_split=len(sources),
        drafts_of_own=drafts[: args.limit],
        drafter_path=args.drafter_path,
        block_size=getattr(args, "block_size", None) or 0,
        device=args.device,
        precision=args.precision or "fp32",
        generation=given,
        block_ngrams=block_ngrams,
    )
    return subject, task


def _raw_sources(args: argparse.Namespace, source: str, target: str, dictionary: Any) -> Any:
    """The source side of a split as fairseq-preprocess wrote it."""
    if dictionary is None:
        raise AggdecError(f"--task {args.task}: its source is no text; compare two runs of fairseq-generate instead")
    for pair in (f"{source}-{target}", f"{target}-{source}"):
        path = Path(args.data) / f"{args.gen_subset}.{pair}.{source}"
        found = data_utils.load_indexed_dataset(str(path), dictionary)
        if found is not None:
            return found
    raise AggdecError(f"{path}: no such split; check the data folder, --gen-subset, --source-lang and --target-lang")


Loaded = tuple[Any, list[BaseFairseqModel]]

_ENGINE_OPTIONS = {"int8": "int8", "bf16": "bf16", "exact": "bit_exact"}
"""options of the task for precisions that only the engine has; the model's weights are `kept_in` another"""


class Runners:
    """Makes the runners of a subject, and loads the models once for each precision.

    It is a context manager: at its end, models are freed, other processes ended and temporary files removed.
    """

    def __init__(self, subject: Subject) -> None:
        """
        Raises:
            AggdecError: there is no GPU.
        """
        if subject.device == "cuda" and not torch.cuda.is_available():
            raise AggdecError("--device cuda: PyTorch finds no CUDA device; check nvidia-smi, or use --device cpu")
        self.subject = subject
        self._loaded: dict[tuple[str, str | None, int], Loaded] = {}
        self._nat_models: dict[tuple[str, str], nat_runner.Loaded] = {}
        self._translators: dict[str, TranslatorProcess] = {}
        self._greedy: dict[tuple[str, int], dict[int, list[int]]] = {}
        self._folder = subject.keep
        self._stack = ExitStack()

    def __enter__(self) -> "Runners":
        return self

    def __exit__(self, *error: object) -> None:
        for task, _ in self._loaded.values():
            task.release()
        self._stack.close()

    def precision(self, mode: Mode) -> str:
        """The precision in which a mode computes."""
        return mode.precision or self.subject.precision

    def load(self, precision: str, stock: bool = False, beam: int = 1) -> Loaded:
        """The task and the models of a precision, with an engine and a drafter of their own.

        Args:
            precision: one of `PRECISIONS`.
            stock: whether fairseq's own search decodes, which needs the whole model in that precision.
            beam: beam of the search, where models must be loaded separately for it.

        Raises:
            AggdecError: the engine does not have this precision.
        """
        kept = "bf16" if stock and precision == "bf16" else kept_in(precision, self.subject.device)
        key = (kept, None if kept == precision else _ENGINE_OPTIONS.get(precision), beam)
        if key not in self._loaded:
            subject = self.subject
            decoding = Decoding(
                AGGRESSIVE,
                drafter=subject.drafter_path,
                block_size=subject.block_size,
                block_ngrams=subject.block_ngrams,
                int8=key[1] == "int8",
                bit_exact=key[1] == "bit_exact",
            )
            task, models = loading.load(
                subject.path,
                subject.data,
                subject.source_lang,
                subject.target_lang,
                task_name=subject.task,
                decoding=decoding,
            )
            if subject.drafter_path:
                task.load_drafter(subject.drafter_path, models)
            for model in models:
                model.to(device=subject.device, dtype=loading.DTYPES[kept])
            self._loaded[key] = task, models
        return self._loaded[key]

    def make(self, mode: Mode, batch_size: int, shuffled: bool = False) -> Runner:
        """The runner of a mode.

        Args:
            mode: how to decode.
            batch_size: sentences in a batch; sentences of similar length share one.
            shuffled: put sentences into batches in random order instead; other programs ignore it.

        Raises:
            AggdecError: the mode cannot decode the subject.
        """
        precision = self.precision(mode)
        if mode.nat is not None:
            return self._nat_runner(mode, precision, batch_size)
        if mode.peer == CTRANSLATE2:
            return self._ctranslate2_runner(mode, precision, batch_size)
        task, models = self.load(precision, stock=mode.row.is_fairseqs)
        if mode.beam > 1 and any(hasattr(model, "set_beam_size") for model in models):
            # fairseq's search sets the beam size of BART models, and they keep it
            task, models = self.load(precision, stock=True, beam=mode.beam)
        batches = self._batches(task, batch_size, shuffled)
        texts = self._oracle_texts(mode, precision, batch_size)
        options = {"drafts": self.subject.drafts} if mode.decoding in CUT else {}
        if mode.row.drafter == SMALL_MODEL and self.subject.small_drafter is not None:
            options["drafter"] = self.subject.small_drafter
        mode = replace(mode, options={**options, **mode.options})
        return FairseqRunner(task, models, batches, mode, texts, **self.subject.generation)

    def any_task(self) -> Any:
        """A task, for its dictionaries; any precision will do."""
        return next(iter(self._loaded.values()))[0] if self._loaded else self.load("fp32")[0]

    def copied_texts(self, mode: Mode, batch_size: int) -> Mapping[int, Sequence[int]]:
        """The texts that `iad` copies from, as token numbers of the source dictionary, EOS included."""
        if self.subject.oracle is None:
            return dict(enumerate(self.subject.sentences))
        return self._texts_to_copy(self.precision(mode), batch_size, self.subject.oracle.edit_ratio)

    def _sentences(self) -> list[torch.Tensor]:
        return [torch.tensor(sentence) for sentence in self.subject.sentences]

    def _batches(self, task: Any, size: int, shuffled: bool = False) -> list[dict[str, Any]]:
        count = len(self.subject.sentences)
        order = Random(1).sample(range(count), count) if shuffled else None
        batches = loading.batches_of(task, self._sentences(), size, by_length=size > 1, order=order)
        lines, dictionary = self.subject.drafts_of_own, task.target_dictionary
        for batch in batches if lines else ():
            batch["drafts"] = [draft_tokens(lines[number], dictionary) for number in batch["id"].tolist()]
        return batches

    def _nat_runner(self, mode: Mode, precision: str, batch_size: int) -> NatRunner:
        assert mode.nat is not None
        key = (mode.nat.path, precision)
        if key not in self._nat_models:
            subject = self.subject
            task, model = nat_runner.load_nat(mode.nat, subject.data, subject.source_lang, subject.target_lang)
            self._nat_models[key] = task, model.to(device=subject.device, dtype=loading.DTYPES[precision])
        return NatRunner(self._nat_models[key], mode, self._sentences(), batch_size)

    def _ctranslate2_runner(self, mode: Mode, precision: str, batch_size: int) -> CTranslate2Runner:
        task = self.any_task()
        languages = task.languages
        if precision not in self._translators:
            if self._folder is None:
                self._folder = self._stack.enter_context(TemporaryDirectory(prefix="aggdec-bench-"))
            subject = self.subject
            converted = ctranslate2_runner.convert(subject.path, subject.data, languages, Path(self._folder))
            translator = TranslatorProcess(converted, precision, subject.device, torch.get_num_threads())
            self._stack.callback(translator.close)
            self._translators[precision] = translator
        dictionaries = (task.source_dictionary, task.target_dictionary)
        batches = self._batches(task, batch_size)
        return CTranslate2Runner(self._translators[precision], dictionaries, batches, mode, self.subject.generation)

    def _oracle_texts(self, mode: Mode, precision: str, batch_size: int) -> Texts | None:
        """The texts that the drafts of a mode are made from; None where the model drafts by itself, or nobody."""
        settings = self.subject.oracle
        if settings is not None and mode.row.copies:
            return self._texts_to_copy(precision, batch_size, settings.edit_ratio)
        if settings is not None and mode.row.drafts_by_model and mode.row.verifies and not mode.row.has_beam:
            outputs = self._greedy_outputs(precision, batch_size)
            return texts_to_propose(outputs, settings.accepted, self.subject.block_size, self._vocabulary(precision))
        return None

    def _texts_to_copy(self, precision: str, batch_size: int, edit_ratio: float) -> Texts:
        return texts_to_copy(self._greedy_outputs(precision, batch_size), edit_ratio, self._vocabulary(precision))

    def _vocabulary(self, precision: str) -> range:
        """Token numbers of the ordinary symbols of the target dictionary."""
        dictionary = self.load(precision)[0].target_dictionary
        return range(dictionary.nspecial, len(dictionary))

    def _greedy_outputs(self, precision: str, batch_size: int) -> dict[int, list[int]]:
        key = (precision, batch_size)
        if key not in self._greedy:
            task, models = self.load(precision)
            batches = self._batches(task, batch_size)
            runner = FairseqRunner(task, models, batches, Mode(GREEDY, GREEDY), **self.subject.generation)
            decoded = [runner.outputs(number, runner.decode(number)) for number in range(len(batches))]
            self._greedy[key] = {number: output.tokens for part in decoded for number, output in part.items()}
        return self._greedy[key]
