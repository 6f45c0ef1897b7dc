"""The mixin that gives any fairseq task this plugin's decoding modes, and `aggressive`, which makes such a task."""

import logging
import weakref
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import make_dataclass, replace
from typing import Any, ClassVar

from fairseq.data import EpochBatchIterator, FairseqDataset
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask

from fairseq_aggdec.compat.batches import WatchedBatches
from fairseq_aggdec.compat.model_locks import alone_with
from fairseq_aggdec.compat.plain_attention import make_plain
from fairseq_aggdec.decoding.stats import DecodingTotals
from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.errors import AggdecError, refuse_all
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafter_checkpoint import (
    kind_of,
    load_drafter,
    only_drafter,
    refuse_drafters,
)
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator, arguments_of
from fairseq_aggdec.generation.modes import HEADS, Mode
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.generation.stats_file import StatsFile
from fairseq_aggdec.models.blockwise_transformer import proposal_heads
from fairseq_aggdec.tasks.data_folder import NamesMissingSplit, TaskConfig
from fairseq_aggdec.tasks.draft_file import DraftFile
from fairseq_aggdec.tasks.fairseq_options import (
    DecodingOptions,
    check_options,
    decoding_of,
    options_of,
    refused,
)
from fairseq_aggdec.tasks.interactive import InteractiveTask

logger = logging.getLogger(__name__)


def aggressive(task: type[FairseqTask]) -> type[FairseqTask]:
    """The class of a fairseq task with the decoding modes, for fairseq's `register_task`.

    Its `config_class` is the dataclass of its options, which `register_task` takes; None for a task with `add_args`.
    """
    config = getattr(task, "__dataclass", None)
    if config is not None:
        config = make_dataclass(
            f"Aggressive{config.__name__}", [], bases=(config, DecodingOptions)
        )
    content = {"__module__": __name__, "__doc__": task.__doc__, "config_class": config}
    return type(f"Aggressive{task.__name__}", (AggressiveDecoding, task), content)


class _Run:
    """The totals of a task's current generator, without the generator: it outlives the task and its models."""

    _totals = DecodingTotals()
    _mode = ""
    _drafts = ""

    def begin(self, generator: AggressiveGenerator) -> None:
        """Log the totals of the last generator, and take those of this one."""
        self.report()
        self._totals = generator.totals
        self._mode = generator.mode.name
        self._drafts = ""
        drafted = generator.block_draft
        if drafted.max_draft_len > 0:
            by = "proposal heads" if drafted.drafter is None else "a model"
            self._drafts = f"; drafts of at most {drafted.max_draft_len} tokens by {by}"

    def report(self) -> None:
        """Log the totals, once."""
        if self._totals.sentences > 0:
            logger.info(
                f"--decoding {self._mode}: {self._totals.summary()}{self._drafts}"
            )
            self._totals = DecodingTotals()

    def end(self) -> None:
        """Log the totals of fairseq-interactive, or of an interrupted run: the task is gone, or the program ends."""
        # the log may be closed (--results-path)
        raises, logging.raiseExceptions = logging.raiseExceptions, False
        self.report()
        logging.raiseExceptions = raises


class AggressiveDecoding(NamesMissingSplit, DraftFile, InteractiveTask):
    """Mixin, named before fairseq's task: its checkpoints are decoded by this plugin's modes, without retraining."""

    config_class: ClassVar[type | None] = None

    def __init__(self, cfg: TaskConfig, *rest: Any, **named: Any) -> None:
        """`cfg`: the task's configuration, or the namespace of a legacy task; the rest is the task's."""
        super().__init__(cfg, *rest, **named)
        self._given = cfg
        self._options = options_of(cfg)
        self.decoding = decoding_of(self._options)
        """how the generators decode for which nothing else is given"""
        self._stats_file: StatsFile | None = None
        self._engines: dict[Arithmetic, Engines] = {}
        self._drafters: dict[str, LoadedDrafter] = {}
        self._run = _Run()
        weakref.finalize(self, self._run.end)

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """--source-lang and --target-lang; None where the task has no such option, or it is not given."""
        return getattr(self._given, "source_lang", None), getattr(
            self._given, "target_lang", None
        )

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """The task's options and `DecodingOptions`."""
        if cls.config_class is not None and getattr(cls, "__dataclass", None) is None:
            raise AggdecError(
                f"task {cls.__name__}: its options are a dataclass; register it by register_task(NAME, "
                "dataclass=TASK.config_class)(TASK), where TASK is what aggressive() has returned"
            )
        super().add_args(parser)
        # leaves out what the parser has
        gen_parser_from_dataclass(parser, DecodingOptions())

    check_arguments = staticmethod(check_options)
    """What a command line asks for is refused before fairseq's assertions, see `compat.command_line`."""

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> FairseqTask:
        """As fairseq's; raises `AggdecError` for an option that makes no sense, and languages that do not fit."""
        check_options(cfg)
        of_several = hasattr(cfg, "lang_pairs") or hasattr(cfg, "langs")
        wrong = (
            (ValueError, AttributeError, KeyError, FileNotFoundError)
            if of_several
            else (FileNotFoundError,)
        )
        named = (
            "--langs, --lang-pairs, --source-lang and --target-lang"
            if of_several
            else "data folder and task"
        )
        try:
            task = super().setup_task(cfg, **kwargs)
            _ = task.source_dictionary, task.target_dictionary
        except wrong as error:
            raise AggdecError(f"{str(error).rstrip('.')}: check {named}") from error
        return task

    def build_generator(
        self,
        models: list[BaseFairseqModel],
        args: Namespace,
        seq_gen_cls: type | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        *,
        decoding: Decoding | None = None,
        **given: Any,
    ) -> SequenceGenerator:
        """The task's generator under `--decoding beam` and `--score-reference`, else an `AggressiveGenerator` like it.

        `decoding`: None: by the task's options; `given`: what else the task takes. Raises `AggdecError` for options
        that the mode cannot honour.
        """
        make_plain(models)
        self._nbest = getattr(args, "nbest", 1)
        decoding = decoding or self.decoding
        heads = next(filter(None, map(proposal_heads, models)), 0)
        decoding.check(heads)
        mode = decoding.resolved(heads)
        if mode.verifies:
            refuse_drafters(models, self._options.path)
        if hasattr(self._given, "lang_pairs") and None in self.languages:
            raise AggdecError(
                "--source-lang and --target-lang: a model of several languages needs both for decoding"
            )
        if mode.is_fairseqs or getattr(args, "score_reference", False):
            given |= {
                "seq_gen_cls": seq_gen_cls,
                "extra_gen_cls_kwargs": extra_gen_cls_kwargs,
            }
            given = {name: value for name, value in given.items() if value is not None}
            with alone_with(models):
                return super().build_generator(models, args, **given)

        # check, make, note
        extra = dict(extra_gen_cls_kwargs or {})
        prefix_fn = given.pop("prefix_allowed_tokens_fn", None) or getattr(
            args, "prefix_allowed_tokens_fn", None
        )
        faults = refused(mode, args, extra.get("lm_model"), prefix_fn)
        standard = AggressiveBeamGenerator if mode.has_beam else AggressiveGenerator
        kind = seq_gen_cls or standard
        refuse_all(
            [
                *faults,
                *self._generator_faults(decoding, mode, len(models), kind, standard),
            ]
        )
        generator = self._make_generator(
            kind, models, args, extra, decoding, mode, heads, **given
        )
        self._run.begin(generator)
        return generator

    def _generator_faults(
        self, decoding: Decoding, mode: Mode, models: int, kind: type, standard: type
    ) -> Iterator[str]:
        """What this task, so many models, or a kind of generators other than the mode's cannot do."""
        if decoding.bit_exact and models > 1:
            yield f"--bit-exact takes one model, and --path names {models}: give one, or leave it out"
        if self.source_dictionary is None and (
            decoding.drafter or (mode.copies and not decoding.draft_file)
        ):
            yield (
                f"--decoding {decoding.mode} drafts from the source's text, and this task's source is none: take "
                "--decoding greedy, aggressive-beam, or iad with --draft-file"
            )
        if not issubclass(kind, standard):
            yield (
                f"seq_gen_cls {kind.__name__}: --decoding {mode.name} has a generator of its own; give a subclass of "
                f"{standard.__name__}, or decode with --decoding beam"
            )

    def _make_generator(
        self,
        kind: type,
        models: list[BaseFairseqModel],
        args: Namespace,
        extra: dict[str, Any],
        decoding: Decoding,
        mode: Mode,
        heads: int,
        **given: Any,
    ) -> AggressiveGenerator:
        """A generator of this kind; `extra`: arguments of fairseq's and of ours, `heads`: see `Decoding.resolved`."""
        # what drafts: the kind of a drafter, which is loaded once, decides about the mode
        block_draft = None
        if mode.drafter == HEADS:
            block_draft = BlockDraftOptions(None, decoding.block_size or heads)
        elif mode.drafts_by_model:
            if decoding.drafter:
                drafter = self.load_drafter(decoding.drafter, models)
                decoding.check(heads, kind_of(drafter))
                mode = decoding.resolved(heads, kind_of(drafter))
            else:
                drafter = LoadedDrafter(only_drafter(models, self._options.path))
            block_draft = BlockDraftOptions(
                drafter, drafter.block_size(decoding.block_size)
            )

        # fairseq's generator, which has the options of the search
        if not mode.has_beam and getattr(args, "beam", 5) != 1:
            logger.info(f"--decoding {mode.name} has a beam of one: --beam is set to 1")
            # before `super()`, which passes it to the models (BART reads it once); fairseq logs it
            args.beam = 1
        of_fairseq = arguments_of(SequenceGenerator, extra)
        with alone_with(models):
            stock = super().build_generator(
                models, args, extra_gen_cls_kwargs=of_fairseq, **given
            )

        # ours around it
        if decoding.stats and self._stats_file is None:
            self._stats_file = StatsFile(decoding.stats)
        return kind(
            stock,
            replace(decoding, mode=mode.name),
            self.source_dictionary,
            block_draft=block_draft,
            keep_drafts=getattr(args, "retain_iter_history", False),
            stats_file=self._stats_file,
            engines=self._engines.setdefault(
                decoding.arithmetic, Engines(decoding.arithmetic)
            ),
            form=getattr(self, "form", None),
            **extra,
        )

    def load_drafter(self, path: str, models: list[BaseFairseqModel]) -> LoadedDrafter:
        """Load the drafter of a checkpoint, once, see `generation.drafter_checkpoint.load_drafter`.

        Call this before `models`, the verifiers, are converted to bfloat16, which changes their fingerprints.
        """
        if path not in self._drafters:
            self._drafters[path] = load_drafter(path, self, models)
        return self._drafters[path]

    def begin_valid_epoch(self, epoch: int, model: BaseFairseqModel) -> None:
        """As fairseq's; clears the engines, since training has changed the weights since the last validation."""
        super().begin_valid_epoch(epoch, model)
        for engines in self._engines.values():
            engines.clear()
        for drafter in self._drafters.values():
            drafter.forget_verifiers()

    def release(self) -> None:
        """Free the engines and drafters, and with them the copies of models' weights."""
        self._run.report()
        if self._stats_file is not None:
            self._stats_file.close()
            self._stats_file = None
        for engines in self._engines.values():
            engines.clear()
        self._drafters.clear()

    def get_batch_iterator(
        self, dataset: FairseqDataset, *args: Any, **kwargs: Any
    ) -> EpochBatchIterator:
        """As fairseq's, for the batches of --shard-id; the run's totals are logged after the last batch of a split.

        fairseq-generate itself does not read its options --num-shards and --shard-id. The iterator of a buffer of
        fairseq-interactive is not cached for a next epoch.
        """
        is_split = any(dataset is loaded for loaded in self.datasets.values())
        if not is_split:
            kwargs["disable_iterator_cache"] = True
        if kwargs.get("num_shards", 1) == 1:
            shards = self._options.num_shards or 1
            number = self._options.shard_id or 0
            if not 0 <= number < shards:
                raise AggdecError(
                    f"--shard-id {number}: must be at least 0 and below --num-shards {shards}"
                )
            kwargs["num_shards"] = shards
            kwargs["shard_id"] = number
        batches = super().get_batch_iterator(dataset, *args, **kwargs)
        if is_split or self._buffer:
            watch: Any = (
                {"after_last": self._run.report}
                if is_split
                else {"before_each": self._note_ids}
            )
            next_epoch = batches.next_epoch_itr
            batches.next_epoch_itr = lambda *a, **k: WatchedBatches(
                next_epoch(*a, **k), **watch
            )
        return batches
