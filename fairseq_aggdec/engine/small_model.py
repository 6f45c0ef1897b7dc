"""Drafting by an ordinary model, such as a smaller one: greedily, token by token."""

from collections.abc import Sequence
from itertools import accumulate, takewhile
from operator import add, eq, or_
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, RowSelection, padded
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.draft_decoder import LateStart
from fairseq_aggdec.engine.recompute import RecomputeVerifier
from fairseq_aggdec.engine.shortlist import Shortlist

Texts = Sequence[Sequence[int]]


class SmallModel(LateStart):
    """A `drafters.block.BlockModel` over what could verify with an ordinary decoder.

    Its KV cache covers the text and its draft, except the last draft token. Draft tokens that the verifier has accepted
    are not read again; those that it has rejected are overwritten.
    """

    _engine: Decoder | RecomputeVerifier
    sync_is_costly = False  # its drafts are on the host: it has read each token

    def __init__(
        self,
        engine: Decoder | RecomputeVerifier,
        decoder: Any,
    ) -> None:
        """`engine`: of `decoder`, for its cache."""
        super().__init__(engine)
        self.max_positions: int = decoder.max_positions()
        self._device = next(decoder.parameters()).device
        self._shortlist = Shortlist(engine, decoder)
        words = decoder.dictionary
        self._rules = SearchRules(
            words.pad(),
            words.unk(),
            words.eos(),
            max_len=self.max_positions - 1,
        )
        # of each row, the tokens that have been read; empty before the first draft
        self._cached: list[list[int]] = []

    def draft(self, texts: Texts, block_size: int) -> Tensor:
        """As `BlockModel.draft`: at most `block_size` tokens after each text, on the host."""
        self.begin()
        self._shortlist.see(texts)
        block = self._unread(texts)
        columns: list[list[int]] = []  # the tokens of each step
        ended = [False] * len(texts)
        none = torch.empty(len(texts), 0, dtype=torch.long)
        while True:
            # the best token after each row's last one
            chosen = self._engine.verify(block, self._rules)
            best = chosen.tokens[_lasts(block)]
            column = self._shortlist.symbols(best).tolist()
            columns.append(column)

            # which is read by the next step, unless all drafts have ended
            ends = [token == self._rules.eos for token in column]
            ended = list(map(or_, ended, ends))
            if len(columns) == block_size or all(ended):
                break
            widths = block.ragged.widths
            starts = list(map(add, block.known_starts, widths))
            block = Block.of_draft(
                column,
                starts,
                none,
                widths=None,
                device=self._device,
            )

        # the last token of a draft has not been read
        drafts = list(zip(*columns, strict=True))
        self._cached = [[*text] for text in texts]
        for read, draft in zip(self._cached, drafts, strict=True):
            read.extend(draft[:-1])
        return torch.tensor(drafts)

    def replace_drafts(self, texts: Texts, drafts: Texts) -> None:
        """Replace the last drafts of these texts by others, as a benchmark that simulates drafts does."""
        for text, draft, read in zip(texts, drafts, self._cached, strict=True):
            drafted = len(read) - len(text)
            read[len(text) :] = draft[:drafted]

    def _unread(self, texts: Texts) -> Block:
        """The tokens of each text that have not been read; its last token, at least."""
        cached = self._cached or [[]] * len(texts)
        starts = []
        unread = []
        for text, read in zip(texts, cached, strict=True):
            # the common beginning; the last token is read in any case
            are_equal = map(eq, text, read)
            known = sum(takewhile(bool, are_equal))
            start = min(len(text) - 1, known)
            starts.append(start)
            unread.append(text[start:])
        tokens = padded(unread, self._rules.pad)
        return Block.of_draft(
            tokens[:, 0].tolist(),
            starts,
            tokens[:, 1:],
            list(map(len, unread)),
            self._device,
        )

    def _begun(self, encoder_out: dict[str, Any]) -> None:
        self._cached = []

    def _keep(self, order: RowSelection) -> None:
        self._cached = [self._cached[row] for row in order.rows]


def _lasts(block: Block) -> list[int]:
    """The place of each row's last token among the block's N."""
    return [end - 1 for end in accumulate(block.ragged.widths)]
