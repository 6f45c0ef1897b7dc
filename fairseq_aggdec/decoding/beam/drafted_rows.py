"""Rows guessed by a block drafter: its scores of the next positions, each after its own draft."""

from collections.abc import Sequence
from itertools import takewhile
from operator import eq
from typing import Protocol

from fairseq_aggdec.decoding.beam.prefix_tree import Row
from fairseq_aggdec.decoding.beam.roles import Sentence
from fairseq_aggdec.decoding.drafters.block import BlockModel
from fairseq_aggdec.decoding.tokens import Order


class ReturningModel(BlockModel, Protocol):
    """A `BlockModel` that can return to an earlier prefix."""

    def go_back(self, lengths: Sequence[int]) -> None:
        """Roll each row back to its first `lengths` tokens."""


class RowDrafter:
    """Drafts rows after the best hypothesis, whenever half of the searches have used up their last draft."""

    def __init__(self, model: ReturningModel, block_size: int, entries: int) -> None:
        """Draft blocks of k tokens, at most as in the model's training; a row stores its best `entries`."""
        self._model = model
        self._block_size = block_size
        self._entries = entries
        self._read: dict[int, list[int]] = {}  # by sentence, the prefix of the last draft
        self._rows: dict[int, dict[int, Row]] = {}  # by sentence, the drafted rows by depth

    def behind(self, sentences: Sequence[Sentence]) -> list[dict[int, Row]]:
        """The drafted rows of each sentence, by depth."""
        out = [sentence.search.taken not in self._rows.get(sentence.number, {}) for sentence in sentences]
        if 2 * sum(out) >= len(out):
            self._draft(sentences)
        return [self._rows[sentence.number] for sentence in sentences]

    def keep(self, order: Order) -> None:
        """Keep only these sentences."""
        self._model.keep(order)

    def _draft(self, sentences: Sequence[Sentence]) -> None:
        texts = [sentence.search.live[0].node.tokens() for sentence in sentences]
        size = min(self._block_size, self._model.max_positions - max(map(len, texts)))
        if size < 1:
            self._rows = {sentence.number: {} for sentence in sentences}
            return
        read = [self._read.get(sentence.number, []) for sentence in sentences]
        # the length of each text's common prefix with the text of the last draft
        self._model.go_back([sum(takewhile(bool, map(eq, *both))) for both in zip(texts, read, strict=True)])
        values, names = self._model.entries(texts, size, self._entries)
        size = len(values) // len(texts)  # fewer where all rows have ended
        rows = [Row(*row) for row in zip(values.tolist(), names.tolist(), strict=True)]
        for number, (sentence, text) in enumerate(zip(sentences, texts, strict=True)):
            own = rows[number * size : (number + 1) * size]
            self._read[sentence.number] = text
            self._rows[sentence.number] = {len(text) - 1 + place: row for place, row in enumerate(own)}
