"""What runs a decoder's passes: `Eager`, one operation after the other, or `graphs.runner.Graphs`, as CUDA graphs."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, Ragged, RowSelection
from fairseq_aggdec.engine.memory import LastFeatures, Memory
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.choice import choose_block, entries_behind

_LOGITS_CHUNK = 128
"""tokens whose logits are computed at once; the memory of all logits would be fetched from the system and
returned for each block, which takes longer than the arithmetic"""
_MAX_PADDING_READ = 4
"""padding tokens that are read along, since to leave them out would take longer"""

ChooseDraft = Callable[[Tensor, Tensor], Tensor]
"""from features of k masks, B x k x D, and the token before them, B, to draft tokens, B x k"""


ChooseProposals = Callable[[Tensor], Tensor]
"""from features of R rows, R x D, to the proposals of heads 2 to k, R x (k - 1)"""


class DraftBlock(NamedTuple):
    """The input of a block drafter's pass: of each row W tokens, the last ones masks."""

    table: Tensor
    """B x (2 + 2W + k), on the host, see `split`"""
    width: int
    """W"""
    block_size: int
    """k"""
    last_start: int
    """the largest position of a row's first token"""
    embed: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    """from tokens, B x W, starts, B x 1, and wanted columns to embeddings, B x W x D; None: the decoder's"""

    @staticmethod
    def split(table: Any, width: int, block_size: int) -> Any:
        """The parts of a table of this many columns: the last committed token and the position of the first token of
        each row, B x 1 each; tokens, and the last position to which each attends, B x W; columns of the masks, B x k.
        """
        ends = [1, 2, 2 + width, 2 + 2 * width, 2 + 2 * width + block_size]
        return [
            table[:, first:end] for first, end in zip([0, *ends], ends, strict=False)
        ]


class Runner(Protocol):
    """Runs the passes of one decoder over the memory of the present batch."""

    def block(
        self,
        block: Block,
        rules: SearchRules,
        ranks: int = 0,
        sequence: Tensor | None = None,
    ) -> Chosen:
        """See `roles.Verifier.verify`."""

    def tree(
        self,
        block: TreeBlock,
        rules: SearchRules,
        count: int,
        sequences: Tensor | None = None,
    ) -> Iterator[Entries]:
        """See `beam.roles.TreeVerifier.verify_tree`."""

    def read(self, block: Block) -> Tensor:
        """Decoder output before the vocabulary projection at a block's tokens, N x D."""

    def draft(self, block: DraftBlock, choose: ChooseDraft) -> Tensor:
        """Draft tokens, B x k, on the device; the next draft may overwrite them."""

    def propose(
        self, columns: np.ndarray, choose: ChooseProposals, last_head: int
    ) -> Tensor:
        """Proposals of heads 2 to `last_head`, on the device, from `Memory.features`; the next may overwrite them.

        `columns`: the column of each row's token before last.
        """


class Eager(Runner):
    """Launches one operation after the other, for a block, a tree and rules of any kind."""

    def __init__(self, parts: Parts, memory: Memory) -> None:
        self._parts = parts
        self._choice = parts.backend.choice
        self.memory = memory
        self._attends = False  # whether the layers know this batch's sources

    def start(self, encoder_out: dict[str, Any], temperature: float) -> None:
        """See `Decoder.start`."""
        self.memory.start(encoder_out, temperature)
        self._attends = False

    def keep(self, order: RowSelection) -> None:
        """Keep only these rows."""
        self.memory.keep(order)
        self._attends = False

    def block(
        self,
        block: Block,
        rules: SearchRules,
        ranks: int = 0,
        sequence: Tensor | None = None,
    ) -> Chosen:
        return self.choose(self.read(block), block, rules, ranks, sequence)

    def choose(
        self,
        features: Tensor,
        block: Block,
        rules: SearchRules,
        ranks: int,
        sequence: Tensor | None,
    ) -> Chosen:
        """`block`, from what `read` has returned."""
        return choose_block(
            self.scores(features), self._choice, block, rules, ranks, sequence
        )

    def tree(
        self,
        block: TreeBlock,
        rules: SearchRules,
        count: int,
        sequences: Tensor | None = None,
    ) -> Iterator[Entries]:
        scores = self.scores(self.read_tree(block))
        return entries_behind(scores, self._choice, block, rules, count, sequences)

    def scores(self, features: Tensor) -> Iterator[Tensor]:
        """Logits over the temperature, N x D -> chunks of n x V."""
        is_one = self._parts.backend.sync_is_costly or features.size(0) <= _LOGITS_CHUNK
        for part in (features,) if is_one else features.split(_LOGITS_CHUNK):
            yield self._parts.scores(part, self.memory.temperature)

    def read(self, block: Block) -> Tensor:
        ragged = block.ragged
        memory = self.memory
        padding = len(ragged.widths) * ragged.width - ragged.size
        # heads read any column; on a GPU padding costs a pass no time
        can_be_ragged = not (
            self._parts.backend.sync_is_costly or memory.keeps_features
        )
        if can_be_ragged and padding > _MAX_PADDING_READ:
            return self.features(
                block.tokens, block.starts, block.last_start, ragged=ragged
            )
        features = self.features(block.tokens, block.starts, block.last_start)
        if memory.keeps_features:
            memory.features = LastFeatures(features, list(block.known_starts))
        return ragged.pack(features)

    def read_tree(self, block: TreeBlock) -> Tensor:
        """Decoder output before the vocabulary projection at a tree's tokens, N x D."""
        block = block.on(self._parts.device)
        x = self._parts.read(block.tokens, block.positions, block.last_position + 1)
        cache = self.memory.cache
        cache.reserve(block.end)
        x = self._layers().tree(
            x, cache, block.positions, block.paths, block.end, block.ragged
        )
        return self._parts.features(x)

    def draft(self, block: DraftBlock, choose: ChooseDraft) -> Tensor:
        return choose(*self.read_masks(block))

    def propose(
        self, columns: np.ndarray, choose: ChooseProposals, last_head: int
    ) -> Tensor:
        features = self.memory.features
        assert features is not None
        return choose(features.at(torch.from_numpy(columns).to(self._parts.device)))

    def read_masks(self, block: DraftBlock) -> tuple[Tensor, Tensor]:
        """Decoder output at the masks, B x k x D, and the token before them, B."""
        table = block.table.to(self._parts.device, non_blocking=True)
        lasts, starts, tokens, reach, wanted = block.split(
            table, block.width, block.block_size
        )
        embeddings = (
            None if block.embed is None else block.embed(tokens, starts, wanted)
        )
        features = self.features(
            tokens,
            starts[:, 0],
            block.last_start,
            embeddings=embeddings,
            reach=reach,
            wanted=wanted,
        )
        return features, lasts[:, 0]

    def features(
        self,
        tokens: Tensor,
        starts: Tensor,
        last_start: int,
        *,
        embeddings: Tensor | None = None,
        reach: Tensor | None = None,
        wanted: Tensor | None = None,
        ragged: Ragged | None = None,
    ) -> Tensor:
        """Decoder output before the vocabulary projection, B x W x D, or fewer columns; ragged, N x D.

        Args:
            tokens: B x W.
            starts: B, the position of each row's first token.
            last_start: the largest entry of `starts`, on the host.
            embeddings: B x W x D, of the tokens, before positions are added (scaled, after `project_in_dim`); None: the
                decoder's.
            reach: B x W, the last position that each query attends to, at most `last_start` + W - 1; its own
                (causal).
            wanted: the columns to return, B x k; None: all. For others the last layer computes keys and values only.
            ragged: the valid entries of the block; None: all.
        """
        width = tokens.size(1)
        end = last_start + width
        cache = self.memory.cache
        cache.reserve(end)

        # positions
        positions: range | Tensor = range(last_start, end)  # of one row, on the host
        if ragged is not None:
            tokens = ragged.pack(tokens)
            positions = starts[ragged.rows] + ragged.columns
        elif starts.size(0) > 1:
            positions = starts[:, None] + torch.arange(width, device=starts.device)

        # the input of the first layer, and the layers
        if embeddings is None:
            x = self._parts.read(tokens, positions, end)
        else:
            x = self._parts.placed(embeddings, positions, end)
        x = self._layers().block(
            x, cache, starts[:, None], end, ragged=ragged, reach=reach, wanted=wanted
        )
        return self._parts.features(x)

    def _layers(self) -> Any:
        """The layers, which attend to this batch's sources."""
        if not self._attends:
            self._parts.layers.attend_to(self.memory.cross, self.memory.padding)
            self._attends = True
        return self._parts.layers
