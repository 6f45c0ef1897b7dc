"""Support of fairseq-interactive: line numbers in statistics, and answers in the form of the input."""

import logging
from collections.abc import Callable
from typing import Any

from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask
from torch import Tensor

from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.process import shorten_waits
from fairseq_aggdec.tasks.data_folder import Hypothesis, TaskConfig
from fairseq_aggdec.text.encoders import missing_subwords, mostly_unknown
from fairseq_aggdec.text.tokenizer import AsWrittenTokenizer

logger = logging.getLogger(__name__)


class InteractiveTask(FairseqTask):
    """Mixin, named before fairseq's task: records the line of fairseq-interactive to which a sentence belongs.

    fairseq-interactive reads lines in buffers, and sorts each buffer by length into batches.
    """

    def __init__(self, cfg: TaskConfig, *rest: Any, **named: Any) -> None:
        super().__init__(cfg, *rest, **named)
        # the current buffer; empty outside of fairseq-interactive
        self._buffer: list[str] = []
        self._lines_before = 0  # number of lines in earlier buffers
        # index in the buffer of each sentence of the current batch
        self._batch_ids: Tensor | None = None
        self._nbest = 1  # number of hypotheses printed for a sentence
        self._as_written: AsWrittenTokenizer | None = None
        # no --bpe is given, and the warning is not yet logged
        self._may_lack_subwords = False

    def get_interactive_tokens_and_lengths(
        self, lines: list[str], encode_fn: Callable[[str], str]
    ) -> tuple[list[Tensor], list[int]]:
        """As fairseq's; the lines become the current buffer."""
        self._lines_before += len(self._buffer)
        self._buffer = lines
        found = super().get_interactive_tokens_and_lengths(lines, encode_fn)
        if self._may_lack_subwords:
            for line, tokens in zip(lines, found[0], strict=True):
                if mostly_unknown(tokens, self.source_dictionary):
                    logger.warning(missing_subwords(line))
                    self._may_lack_subwords = False
                    break
        return found

    def _note_ids(self, batch: dict[str, Any]) -> None:
        """Before a batch of the current buffer is decoded."""
        self._batch_ids = batch["id"]

    def build_tokenizer(self, args: Any) -> Any:
        """As fairseq's; an `AsWrittenTokenizer` will get the line of each answer."""
        tokenizer = super().build_tokenizer(args)
        self._as_written = (
            tokenizer if isinstance(tokenizer, AsWrittenTokenizer) else None
        )
        return tokenizer

    def build_bpe(self, args: Any) -> Any:
        """As fairseq's; without --bpe, the first line of unknown words causes a warning."""
        bpe = super().build_bpe(args)
        self._may_lack_subwords = bpe is None and self.source_dictionary is not None
        return bpe

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: list[BaseFairseqModel],
        sample: dict[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> list[list[Hypothesis]]:
        """As fairseq's; samples of fairseq-interactive, which have no `id`, get the numbers of their lines."""
        # that one decides by its engines
        if not isinstance(generator, AggressiveGenerator):
            shorten_waits(False)
        if "id" not in sample and self._batch_ids is not None:
            ids = self._batch_ids + self._lines_before
            sample = {**sample, "id": ids.to(sample["net_input"]["src_tokens"].device)}
        found = super().inference_step(generator, models, sample, *args, **kwargs)
        if self._as_written is not None and self._batch_ids is not None:
            for number, hypotheses in zip(self._batch_ids.tolist(), found, strict=True):
                self._as_written.answered(
                    number, self._buffer[number], min(len(hypotheses), self._nbest)
                )
        return found
