"""fairseq's translation task with this plugin's decoding modes."""

import atexit
import logging
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.data import EpochBatchIterator, FairseqDataset
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig
from omegaconf import II

from fairseq_aggdec.compat.batches import WatchedBatches
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafter_checkpoint import load_drafter, only_drafter, refuse_drafters
from fairseq_aggdec.generation.drafting import BlockDraftOptions, DecodingSettings
from fairseq_aggdec.generation.generator import AggressiveGenerator, split_options
from fairseq_aggdec.generation.modes import BLOCK_MODEL, HEADS, MODES, Mode, modes_help
from fairseq_aggdec.generation.stats_file import StatsFile
from fairseq_aggdec.tasks.acceptance_options import acceptance_of
from fairseq_aggdec.tasks.data_folder import NamesMissingSplit, check_data
from fairseq_aggdec.tasks.decoding_options import (
    arithmetic_of,
    check_decoding_options,
    heads_to_use,
    resolved_mode,
    verifier_path,
)
from fairseq_aggdec.tasks.draft_file import DraftFile
from fairseq_aggdec.tasks.fairseq_fields import field_of_fairseq
from fairseq_aggdec.tasks.interactive import InteractiveTask
from fairseq_aggdec.tasks.option_fields import ArithmeticOptions, CopyingOptions, DraftingOptions, narrow_options
from fairseq_aggdec.tasks.refused_options import RefusableOptions, refuse, refuse_early

logger = logging.getLogger(__name__)


@dataclass
class AggressiveTranslationConfig(
    TranslationConfig, CopyingOptions, DraftingOptions, ArithmeticOptions, RefusableOptions
):
    """Options of the task, for the command line and for hydra."""

    decoding: str = field(default="beam", metadata={"help": modes_help()})
    block_ngrams: bool = field(
        default=False,
        metadata={
            "help": "make --no-repeat-ngram-size work where fairseq's search ignores it (without its CUDA extension)"
        },
    )
    decoding_stats: Optional[str] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={"help": "write a JSON line for each sentence to this file: iterations, drafted, accepted, ..."},
    )
    # fairseq's own options; fairseq-generate converts models to fp16 itself, and does not read --bf16
    path: Optional[str] = II("common_eval.path")  # noqa: UP045
    bf16: bool = II("common.bf16")
    fp16: bool = II("common.fp16")
    cpu: bool = II("common.cpu")
    num_shards: int = II("dataset.num_shards")
    shard_id: int = II("dataset.shard_id")


@register_task("aggressive_translation", dataclass=AggressiveTranslationConfig)
class AggressiveTranslationTask(NamesMissingSplit, DraftFile, InteractiveTask):
    """Decodes checkpoints of the plain `translation` task, without retraining."""

    cfg: AggressiveTranslationConfig

    def __init__(self, cfg: AggressiveTranslationConfig, src_dict: Any, tgt_dict: Any) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self._stats_file: StatsFile | None = None
        self._engines = Engines(arithmetic_of(cfg))
        self._drafters: dict[str, LoadedDrafter] = {}
        self._running: AggressiveGenerator | None = None
        atexit.register(self._report_at_exit)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """As fairseq's, with checks of --decoding, --drafts and --block-size."""
        super().add_args(parser)
        narrow_options(parser)

    @classmethod
    def setup_task(cls, cfg: AggressiveTranslationConfig, **kwargs: Any) -> "AggressiveTranslationTask":
        """As fairseq's; raises `AggdecError` for an option that makes no sense and a folder without dictionaries."""
        check_options(cfg)
        check_data(cfg)
        return super().setup_task(cfg, **kwargs)

    def build_generator(
        self,
        models: list[BaseFairseqModel],
        args: Any,
        seq_gen_cls: type | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Callable[[int, Any], list[int]] | None = None,
    ) -> SequenceGenerator:
        """fairseq's generator under `--decoding beam` and `--score-reference`, else an `AggressiveGenerator`.

        Raises `AggdecError` for an option that the mode cannot honour.
        """
        self._nbest = getattr(args, "nbest", 1)
        mode = MODES[resolved_mode(self.cfg, models)]
        if mode.acceptance != "none":
            refuse_drafters(models, verifier_path(self.cfg))
        if mode.name == "beam" or getattr(args, "score_reference", False):
            return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        of_fairseq, others = split_options(extra_gen_cls_kwargs or {})
        prefix_fn = prefix_allowed_tokens_fn or getattr(args, "prefix_allowed_tokens_fn", None)
        refuse(mode.name, args, of_fairseq.get("lm_model"), prefix_fn)
        if self.cfg.bit_exact and len(models) > 1:
            raise AggdecError(f"--bit-exact takes one model, and --path names {len(models)}: give one, or leave it out")
        own = AggressiveBeamGenerator if mode.beam else AggressiveGenerator
        if seq_gen_cls is not None and not issubclass(seq_gen_cls, own):
            raise AggdecError(
                f"seq_gen_cls {seq_gen_cls.__name__}: --decoding {mode.name} has a generator of its own; give a "
                f"subclass of {own.__name__}, or decode with --decoding beam"
            )
        if not mode.beam and getattr(args, "beam", 5) != 1:
            logger.info(f"--decoding {mode.name} has a beam of one: --beam is set to 1")
            args.beam = 1  # before `super()`, which passes it to the models (BART reads it once); fairseq logs it
        settings = self._settings(mode, models, keep_drafts=getattr(args, "retain_iter_history", False))
        self._report()
        stock = super().build_generator(models, args, extra_gen_cls_kwargs=of_fairseq)
        self._running = (seq_gen_cls or own)(stock, settings, **others)
        return self._running

    def _settings(self, mode: Mode, models: list[BaseFairseqModel], keep_drafts: bool) -> DecodingSettings:
        """The settings by the task's options."""
        block_draft = self._block_draft(mode, models)
        most_committed = 1 if block_draft is None else block_draft.most_committed
        if self.cfg.decoding_stats and self._stats_file is None:
            self._stats_file = StatsFile(self.cfg.decoding_stats)
        return DecodingSettings(
            mode,
            self.source_dictionary,
            self.cfg.max_draft_len,
            block_draft,
            acceptance_of(mode.name, self.cfg, self.target_dictionary, most_committed),
            self.cfg.drafts,
            self.cfg.block_ngrams,
            keep_drafts,
            self._stats_file,
            self._engines,
        )

    def _block_draft(self, mode: Mode, models: list[BaseFairseqModel]) -> BlockDraftOptions | None:
        """The drafter or the heads of the mode; None where it drafts no blocks. A drafter is loaded once."""
        if mode.drafter == HEADS:
            return BlockDraftOptions(None, heads_to_use(self.cfg, models))
        path = self.cfg.drafter_path
        if path is None and mode.acceptance == "none":
            drafter = LoadedDrafter(only_drafter(models, verifier_path(self.cfg)))
        elif path is None or mode.drafter != BLOCK_MODEL:
            return None
        else:
            drafter = self.load_drafter(path, models)
        return BlockDraftOptions(drafter, drafter.block_size(self.cfg.block_size))

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
        self._engines.clear()
        for drafter in self._drafters.values():
            drafter.forget_verifiers()

    def release(self) -> None:
        """Free the models, engines and drafters; the task itself lives as long as the program."""
        self._report()
        self._running = None
        if self._stats_file is not None:
            self._stats_file.close()
            self._stats_file = None
        self._engines.clear()
        self._drafters.clear()

    def get_batch_iterator(self, dataset: FairseqDataset, *args: Any, **kwargs: Any) -> EpochBatchIterator:
        """As fairseq's, for the batches of --shard-id; the run's totals are logged after the last batch of a split.

        fairseq-generate itself does not read its options --num-shards and --shard-id.
        """
        if kwargs.get("num_shards", 1) == 1:
            kwargs["num_shards"], kwargs["shard_id"] = self._shard()
        batches = super().get_batch_iterator(dataset, *args, **kwargs)
        if self._is_split(dataset):
            next_epoch = batches.next_epoch_itr
            batches.next_epoch_itr = lambda *a, **k: WatchedBatches(next_epoch(*a, **k), after_last=self._report)
        return batches

    def _shard(self) -> tuple[int, int]:
        """The number of shards and the number of this one (--num-shards, --shard-id)."""
        shards, number = field_of_fairseq(self.cfg, "num_shards", 1), field_of_fairseq(self.cfg, "shard_id", 0)
        if not 0 <= number < shards:
            raise AggdecError(f"--shard-id {number}: must be at least 0 and below --num-shards {shards}")
        return shards, number

    def _report(self) -> None:
        """Log the totals of the current generator, once."""
        if self._running is not None and self._running.totals.sentences > 0:
            drafted = self._running.block_draft
            length = ""
            if drafted is not None:
                by = "proposal heads" if drafted.drafter is None else "a model"
                length = f"; drafts of at most {drafted.max_draft_len} tokens by {by}"
            logger.info(f"--decoding {self._running.decoding}: {self._running.totals.summary()}{length}")
            self._running = None

    def _report_at_exit(self) -> None:
        """Log the totals of fairseq-interactive, or of an interrupted run."""
        logging.raiseExceptions = False  # the log may be a closed file (--results-path)
        self._report()


def check_options(cfg: AggressiveTranslationConfig) -> None:
    """Raise `AggdecError` for a value that makes no sense and for an option that the mode does not read or honour."""
    check_decoding_options(cfg)
    if cfg.decoding != "beam":
        refuse_early(str(cfg.decoding), cfg)
