"""Rows by a block drafter: what it says of the next positions, each given that the ones before are its own choice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from operator import eq
from typing import Protocol

from torch import Tensor

from fairseq_aggdec.decoding.beam.prefix_tree import Row
from fairseq_aggdec.decoding.beam.roles import Sentence
from fairseq_aggdec.decoding.drafters.block import BlockModel
from fairseq_aggdec.decoding.search_rules import best_entries


class ReturningModel(BlockModel, Protocol):
    """A `BlockModel` that can be asked behind another prefix than the one that it has read."""

    def go_back(self, lengths: Sequence[int]) -> None:
        """Forget what each row held behind so many tokens."""


class RowDrafter:
    """Asks behind the best hypothesis, whenever half of the searches have used up what was drafted last."""

    def __init__(self, model: ReturningModel, block_size: int, entries: int) -> None:
        """Draft blocks of k tokens, k at most what the model was trained for; a row keeps its best `entries`."""
        self._model = model
        self._block_size = block_size
        self._entries = entries
        self._read: dict[int, list[int]] = {}  # by sentence, the prefix behind which it was drafted last
        self._rows: dict[int, dict[int, Row]] = {}  # and the rows, by depth

    def behind(self, sentences: Sequence[Sentence]) -> list[dict[int, Row]]:
        """Of each sentence, drafted rows by depth."""
        out = [sentence.search.taken not in self._rows.get(sentence.number, {}) for sentence in sentences]
        if 2 * sum(out) >= len(out):
            self._draft(sentences)
        return [self._rows[sentence.number] for sentence in sentences]

    def keep(self, rows: Tensor) -> None:
        """Forget all sentences but these; the next call has them in this order."""
        self._model.keep(rows)

    def _draft(self, sentences: Sequence[Sentence]) -> None:
        texts = [sentence.search.live[0].node.tokens() for sentence in sentences]
        size = min(self._block_size, self._model.max_positions - max(map(len, texts)))
        if size < 1:
            self._rows = {sentence.number: {} for sentence in sentences}
            return
        read = [self._read.get(sentence.number, []) for sentence in sentences]
        # how many tokens each text begins with that were read before
        self._model.go_back([sum(takewhile(bool, map(eq, *both))) for both in zip(texts, read, strict=True)])
        scores = self._model.score(texts, size).float().log_softmax(dim=-1)  # B x k x V
        values, names = best_entries(scores.flatten(0, 1), self._entries)
        rows = [Row(*row) for row in zip(values.tolist(), names.tolist(), strict=True)]
        for number, (sentence, text) in enumerate(zip(sentences, texts, strict=True)):
            own = rows[number * size : (number + 1) * size]
            self._read[sentence.number] = text
            self._rows[sentence.number] = {len(text) - 1 + place: row for place, row in enumerate(own)}
