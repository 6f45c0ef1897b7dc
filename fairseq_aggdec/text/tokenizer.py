"""`--tokenizer as_written`: fairseq's name for `WrittenLine`, for English correctors."""

from heapq import heappop, heappush
from typing import Any

from fairseq.data.encoders import register_tokenizer
from fairseq.dataclass import FairseqDataclass

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.text.line import WrittenLine, moses


@register_tokenizer("as_written", dataclass=FairseqDataclass)
class AsWrittenTokenizer:
    """Encodes a line as the Moses tokens that the corrector reads, and decodes its output in the writer's characters.

    `fairseq_aggdec.text.line` says what is promised. fairseq does not tell a tokeniser to which line an output
    belongs; the task `aggressive_translation` does, in every mode, and `aggdec decode`. fairseq-generate has no lines
    of text: there it is plain Moses.
    """

    def __init__(self, config: Any = None) -> None:
        # a heap of line index, rank of the hypothesis, line
        self._answered: list[tuple[int, int, str]] = []
        self._has_read = False

    def encode(self, line: str) -> str:
        """Moses tokens, joined by spaces."""
        self._has_read = True
        return WrittenLine(line).tokens

    def answered(self, index: int, line: str, hypotheses: int) -> None:
        """Announce that hypotheses for this line will be decoded; lines are decoded in the order of their indices.

        Args:
            index: the line's.
            line: the line as it was encoded.
            hypotheses: how many will be decoded.
        """
        for rank in range(hypotheses):
            heappush(self._answered, (index, rank, line))

    def decode(self, tokens: str) -> str:
        """A hypothesis as running text.

        Raises:
            AggdecError: lines were encoded, and no task has announced the line of this hypothesis.
        """
        if self._answered:
            return WrittenLine(heappop(self._answered)[2]).restored(tokens)
        if self._has_read:
            raise AggdecError(
                "--tokenizer as_written: only aggdec decode and fairseq-interactive with --task aggressive_translation "
                "can use it; in a program use fairseq_aggdec.text.line.WrittenLine, elsewhere --tokenizer moses"
            )
        return str(moses()[1].detokenize(tokens.split(), unescape=False))
