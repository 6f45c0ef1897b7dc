"""`--tokenizer as_written`: fairseq's name for `WrittenLine`, for English correctors under fairseq-interactive."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from fairseq.data.encoders import register_tokenizer
from fairseq.dataclass import FairseqDataclass

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.writing.line import WrittenLine, moses


@register_tokenizer("as_written", dataclass=FairseqDataclass)
class AsWrittenTokenizer:
    """Moses tokens of what the corrector reads of a line, and its answer in the writer's own characters.

    `fairseq_aggdec.writing.line` says what is promised. fairseq does not tell a tokeniser whose answer it decodes; the
    task `aggressive_translation` does, in every mode. fairseq-generate has no line of text: there it is plain Moses.
    """

    def __init__(self, config: Any = None) -> None:
        self._answered: list[tuple[int, int, str]] = []  # a heap: line number, rank of the hypothesis, line
        self._has_read = False

    def encode(self, line: str) -> str:
        """Moses tokens, joined by spaces."""
        self._has_read = True
        return WrittenLine(line).tokens

    def answered(self, number: int, line: str, hypotheses: int) -> None:
        """The next hypotheses to decode, in the order of the lines, answer this line.

        Args:
            number: of the line.
            line: what was encoded.
            hypotheses: how many of them will be decoded.
        """
        for rank in range(hypotheses):
            heappush(self._answered, (number, rank, line))

    def decode(self, tokens: str) -> str:
        """Running text.

        Raises:
            AggdecError: lines were encoded, and no task said which one this answers.
        """
        if self._answered:
            return WrittenLine(heappop(self._answered)[2]).restored(tokens)
        if self._has_read:
            raise AggdecError(
                "--tokenizer as_written: only fairseq-interactive with --task aggressive_translation can use it; "
                "in a program use fairseq_aggdec.writing.line.WrittenLine, elsewhere --tokenizer moses"
            )
        return str(moses()[1].detokenize(tokens.split(), unescape=False))
