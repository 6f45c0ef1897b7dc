"""fairseq's translation task with decoding modes that give the output of `--beam 1`, or of any beam, sooner."""

import atexit
import logging
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
from fairseq.data import EpochBatchIterator, FairseqDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II
from omegaconf.errors import InterpolationKeyError
from torch import Tensor

from fairseq_aggdec.compat import interactive_input
from fairseq_aggdec.compat.announced_batches import AnnouncedBatches
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.block_drafters import LoadedDrafter, load_drafter, only_drafter, refuse_drafters
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.stats_file import StatsFile
from fairseq_aggdec.tasks.acceptance_options import acceptance_of
from fairseq_aggdec.tasks.arithmetic_options import ArithmeticOptions, arithmetic_of, check_arithmetic_options
from fairseq_aggdec.tasks.copying_options import CopyingOptions, check_copying_options, copying_of
from fairseq_aggdec.tasks.data_folder import check_data, of_both_sides, too_long
from fairseq_aggdec.tasks.drafting_options import (
    DraftingOptions,
    check_drafting_options,
    heads_to_use,
    resolved_mode,
    take_block_sizes_of_at_least_one,
    verifier_path,
)
from fairseq_aggdec.tasks.refused_options import SearchOptions, refuse, refuse_early
from fairseq_aggdec.writing.tokenizer import AsWrittenTokenizer

logger = logging.getLogger(__name__)

MODES = ["beam", "greedy", "iad", "gad", "gad++", "nar", "blockwise", "hybrid", "aggressive", "aggressive-beam"]


@dataclass
class AggressiveTranslationConfig(TranslationConfig, CopyingOptions, DraftingOptions, ArithmeticOptions, SearchOptions):
    """Options of the task, for the command line and for hydra alike."""

    decoding: ChoiceEnum(MODES) = field(  # type: ignore[valid-type]
        default="beam",
        metadata={
            "help": "beam: fairseq's own search, untouched; greedy: the output of --beam 1 by this plugin's engine; "
            "iad: the same output by Input-guided Aggressive Decoding, for tasks that mostly copy their input; "
            "gad: the same output by Generalized Aggressive Decoding with --drafter-path; gad++: nearly the same and "
            "sooner, as it keeps drafted tokens that the verifier finds good enough (--top-beta, --tolerance); nar: "
            "what the drafter says, unverified; blockwise: the output of --beam 1 by a model with proposal heads, "
            "which drafts itself; hybrid: the output of --beam 1 with drafts copied as in iad where the output follows "
            "its input, and made by --drafter-path or the model's proposal heads, or guessed, where it does not; "
            "aggressive: the lossless mode for what is given: gad with --drafter-path, else blockwise where the model "
            "has heads, else iad; aggressive-beam: the n-best list of beam, by any --beam, sooner"
        },
    )
    block_ngrams: bool = field(
        default=False,
        metadata={
            "help": "make --no-repeat-ngram-size work where fairseq's search ignores it (without its CUDA extension)"
        },
    )
    decoding_stats: Optional[str] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={"help": "write one JSON line a sentence to this file: iterations, drafted, accepted, ..."},
    )
    num_shards: int = II("dataset.num_shards")
    shard_id: int = II("dataset.shard_id")


@register_task("aggressive_translation", dataclass=AggressiveTranslationConfig)
class AggressiveTranslationTask(TranslationTask):
    """Decodes checkpoints of the plain `translation` task, without retraining."""

    cfg: AggressiveTranslationConfig

    def __init__(self, cfg: AggressiveTranslationConfig, src_dict: Any, tgt_dict: Any) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self._stats_file: StatsFile | None = None
        self._engines = Engines(arithmetic_of(cfg))
        self._drafters: dict[str, LoadedDrafter] = {}
        self._running: AggressiveGenerator | None = None
        self._lines_read = 0  # by fairseq-interactive, before the buffer at hand
        self._buffer: list[str] = []
        self._max_tokens: int | None = None  # of a batch of the buffer
        self._batch_ids: Tensor | None = None  # numbers within the buffer of the batch at hand
        self._as_written: AsWrittenTokenizer | None = None
        self._nbest = 1
        atexit.register(self._report_at_exit)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """As fairseq's, with a check of --block-size."""
        super().add_args(parser)
        take_block_sizes_of_at_least_one(parser)

    @classmethod
    def setup_task(cls, cfg: AggressiveTranslationConfig, **kwargs: Any) -> "AggressiveTranslationTask":
        """As fairseq's, but wrong options and missing data are refused first.

        Raises:
            AggdecError: an option that makes no sense, or a data folder without dictionaries.
        """
        check_options(cfg)
        check_data(cfg)
        return super().setup_task(cfg, **kwargs)

    def load_dataset(self, split: str, *args: Any, **kwargs: Any) -> None:
        """As fairseq's.

        Raises:
            AggdecError: the data folder has no such split.
        """
        try:
            super().load_dataset(split, *args, **kwargs)
        except FileNotFoundError as error:
            raise AggdecError(
                f"{error}: no such split; check the data folder, --gen-subset and --valid-subset"
            ) from error

    def build_generator(
        self,
        models: list[BaseFairseqModel],
        args: Any,
        seq_gen_cls: type | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Callable[[int, Any], list[int]] | None = None,
    ) -> SequenceGenerator:
        """fairseq's generator under `--decoding beam`, else an `AggressiveGenerator`.

        Raises:
            AggdecError: an option that the mode cannot honour.
        """
        self._nbest = getattr(args, "nbest", 1)
        decoding = resolved_mode(self.cfg, models)
        if decoding != "nar":
            refuse_drafters(models, verifier_path(self.cfg))
        if decoding == "beam" or getattr(args, "score_reference", False):
            return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        extra = dict(extra_gen_cls_kwargs or {})
        prefix_fn = prefix_allowed_tokens_fn or getattr(args, "prefix_allowed_tokens_fn", None)
        refuse(decoding, args, extra.pop("lm_model", None), prefix_fn)
        if self.cfg.bit_exact and len(models) > 1:
            raise AggdecError(f"--bit-exact takes one model, and --path names {len(models)}: give one, or leave it out")
        extra.pop("lm_weight", None)
        searches_beams = decoding == "aggressive-beam"
        if not searches_beams and getattr(args, "beam", 5) != 1:
            logger.info(f"--decoding {decoding} has a beam of one: --beam is set to 1")
            args.beam = 1
        if self.cfg.decoding_stats and self._stats_file is None:
            self._stats_file = StatsFile(self.cfg.decoding_stats)
        extra.update(
            src_dict=self.source_dictionary,
            decoding=decoding,
            draft_options=copying_of(self.cfg),
            block_draft=self._block_draft(decoding, models),
            shorten_drafts=not self.cfg.full_drafts,
            adaptive_draft=self.cfg.adaptive_draft,
            stats_file=self._stats_file,
            engines=self._engines,
            block_ngrams=self.cfg.block_ngrams,
            keep_drafts=getattr(args, "retain_iter_history", False),
        )
        self._report()
        own = AggressiveBeamGenerator if searches_beams else AggressiveGenerator
        is_ours = seq_gen_cls is not None and issubclass(seq_gen_cls, own)
        generator_class = seq_gen_cls if is_ours else own
        self._running = super().build_generator(models, args, generator_class, extra)
        return self._running

    def _block_draft(self, decoding: str, models: list[BaseFairseqModel]) -> BlockDraftOptions | None:
        """What the modes with a drafter or heads need; the drafter is loaded once."""
        dictionary = self.target_dictionary
        if decoding == "blockwise" or (decoding == "hybrid" and not self.cfg.drafter_path):
            heads = heads_to_use(self.cfg, models)
            if heads == 0:  # hybrid can do without
                return None
            return BlockDraftOptions(None, heads, acceptance_of(decoding, self.cfg, dictionary, heads))
        if decoding not in ("gad", "gad++", "nar", "hybrid", "aggressive-beam"):
            return None
        if decoding == "aggressive-beam" and not self.cfg.drafter_path:  # it can do without
            return None
        path = self.cfg.drafter_path
        if path is None:
            drafter = LoadedDrafter(only_drafter(models, verifier_path(self.cfg)))
        elif path in self._drafters:
            drafter = self._drafters[path]
        else:
            drafter = self._drafters[path] = load_drafter(path, self, models)
        block_size = drafter.block_size(self.cfg.block_size)
        return BlockDraftOptions(drafter, block_size, acceptance_of(decoding, self.cfg, dictionary, block_size + 1))

    def begin_valid_epoch(self, epoch: int, model: BaseFairseqModel) -> None:
        """Training has written to the weights since the last validation."""
        super().begin_valid_epoch(epoch, model)
        self._engines.clear()
        for drafter in self._drafters.values():
            drafter.forget_verifiers()

    def release(self) -> None:
        """Forget the models and all that was made of them: the task itself lives as long as the program."""
        self._report()
        self._running = None
        if self._stats_file is not None:
            self._stats_file.close()
            self._stats_file = None
        self._engines.clear()
        self._drafters.clear()

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: FairseqDataset,
        max_positions: tuple[int, int] | None = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """As fairseq's, but a sentence that is too long is named with its beginning.

        In fairseq-interactive it is left out alone: the other lines of its buffer are answered.

        Raises:
            AggdecError: there is one, and skipping was not asked for.
        """
        if ignore_invalid_inputs and not self._buffer:
            return super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)
        kept, numbers = dataset.filter_indices_by_size(indices, max_positions)
        dictionary = self.source_dictionary
        limits = {number: f"the model takes {of_both_sides(max_positions)}" for number in numbers}
        if self._buffer and self._max_tokens is not None:
            over = [number for number in kept if dataset.num_tokens(number) > self._max_tokens]
            kept = kept[~np.isin(kept, over)]
            limits |= dict.fromkeys(over, f"--max-tokens allows {self._max_tokens}")
        for number, limit in sorted(limits.items()):
            if not self._buffer:
                raise AggdecError(too_long(dataset, number, 0, limit, dictionary, len(limits) - 1))
            message = too_long(dataset, number, self._lines_read, limit, dictionary)
            if ignore_invalid_inputs:
                logger.warning(message)
            else:
                interactive_input.leave_out(message)
        return kept

    def get_batch_iterator(self, dataset: FairseqDataset, *args: Any, **kwargs: Any) -> EpochBatchIterator:
        """fairseq's iterator, of the shard asked for; at the end of a loaded split the run's totals are logged.

        fairseq-generate has the options --num-shards and --shard-id but does not read them; this does. fairseq keeps
        the iterator, and with it the data, for the next epoch; a buffer of fairseq-interactive has none.
        """
        self._max_tokens = kwargs.get("max_tokens")
        if kwargs.get("num_shards", 1) == 1:
            kwargs["num_shards"], kwargs["shard_id"] = self._shard()
        is_split = any(dataset is loaded for loaded in self.datasets.values())
        if not is_split:
            kwargs["disable_iterator_cache"] = True
        batches = super().get_batch_iterator(dataset, *args, **kwargs)
        next_epoch = batches.next_epoch_itr
        if is_split:
            batches.next_epoch_itr = lambda *a, **k: AnnouncedBatches(next_epoch(*a, **k), at_end=self._report)
        elif self._buffer:
            batches.next_epoch_itr = lambda *a, **k: AnnouncedBatches(next_epoch(*a, **k), at_each=self._note_ids)
        return batches

    def build_tokenizer(self, args: Any) -> Any:
        """As fairseq's; one that restores the writer's characters will be told which lines were answered."""
        tokenizer = super().build_tokenizer(args)
        self._as_written = tokenizer if isinstance(tokenizer, AsWrittenTokenizer) else None
        return tokenizer

    def get_interactive_tokens_and_lengths(self, lines: list[str], encode_fn: Callable[[str], str]) -> Any:
        """As fairseq's; the lines are counted."""
        self._lines_read += len(self._buffer)
        self._buffer = lines
        return super().get_interactive_tokens_and_lengths(lines, encode_fn)

    def inference_step(
        self, generator: Any, models: list[BaseFairseqModel], sample: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """As fairseq's; samples of fairseq-interactive, which sorts them by length, get back their numbers."""
        if "id" not in sample and self._batch_ids is not None:
            sample = {**sample, "id": self._batch_ids + self._lines_read}
        found = super().inference_step(generator, models, sample, *args, **kwargs)
        if self._as_written is not None and self._batch_ids is not None:
            for number, hypotheses in zip(self._batch_ids.tolist(), found, strict=True):
                self._as_written.answered(number, self._buffer[number], min(len(hypotheses), self._nbest))
        return found

    def _note_ids(self, batch: dict[str, Any]) -> None:
        self._batch_ids = batch["id"]

    def _shard(self) -> tuple[int, int]:
        """--num-shards and --shard-id."""
        try:
            shards, number = int(self.cfg.num_shards), int(self.cfg.shard_id)
        except (InterpolationKeyError, ValueError):  # a task by itself, outside fairseq's whole configuration
            return 1, 0
        if not 0 <= number < shards:
            raise AggdecError(f"--shard-id {number}: must be at least 0 and below --num-shards {shards}")
        return shards, number

    def _report(self) -> None:
        """Log what the current generator has done, once."""
        if self._running is not None and self._running.totals.sentences > 0:
            logger.info(f"--decoding {self._running.decoding}: {self._running.totals.summary()}")
            self._running = None

    def _report_at_exit(self) -> None:
        """For fairseq-interactive, and for runs that were broken off."""
        logging.raiseExceptions = False  # the log may be a file that is closed by now (--results-path)
        self._report()


def check_options(cfg: AggressiveTranslationConfig) -> None:
    """Refuse options without meaning, and those that the mode does not read or cannot honour.

    Raises:
        AggdecError: naming the option.
    """
    check_copying_options(cfg)
    check_drafting_options(cfg)
    check_arithmetic_options(cfg)
    if cfg.decoding != "beam":
        refuse_early(str(cfg.decoding), cfg)
