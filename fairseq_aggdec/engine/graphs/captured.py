"""A decoder's passes that are captured as CUDA graphs: what passes over blocks, trees and drafts have in common.

The host keeps the texts, the device the numbers. A pass gets its tokens, positions and limits in one copy, computes the
layers and the choice, and returns the choices in one copy; the host waits once. Sizes are rounded up to a few, so that
few graphs serve all passes; the rows and columns that fill a pass up change nothing that is read.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import proxy

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import Bans, SearchRules
from fairseq_aggdec.decoding.tokens import Block
from fairseq_aggdec.engine.graphs.buffers import MOST_TOKENS, positions_bucket, width_bucket
from fairseq_aggdec.engine.graphs.graphs import Graphs
from fairseq_aggdec.engine.graphs.memory import StaticMemory
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.choice import Best, resolve_ties

_MOST_SCORES = 2**27
"""N x V above which the scores of a pass are not computed in a graph: they stay in its memory"""
LIMITS = 4
"""the input of a pass begins with `pad`, `eos`, `min_len` and `max_len` of the rules"""


def limits_of(rules: SearchRules) -> tuple[int, ...]:
    """The beginning of a pass's input, see `LIMITS`."""
    return rules.pad, rules.eos, rules.min_len, rules.max_len


class Shape(NamedTuple):
    """The sizes of a pass."""

    rows: int
    width: int
    keys: int
    """number of cached positions to attend to"""
    source: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.width} tokens, {self.keys} positions, sources of {self.source}"

    @property
    def tokens(self) -> int:
        return self.rows * self.width


class Captured:
    """The graphs of a decoder, its static memory, and the functions of which passes consist."""

    def __init__(self, parts: Parts) -> None:
        """Raises `ValueError` where kernels do not support the decoder."""
        self.weak: Captured = proxy(self)
        """itself, for the functions of its graphs: those that hold it keep its memory until Python's collector runs"""
        self.parts, self.backend, self.device = parts, parts.backend, parts.device
        self.graphs = Graphs.on(self.device, self.backend.drop_kernels)
        self.memory = StaticMemory(parts, self.graphs)
        self._kernels = self.backend.decoder_kernels(parts.decoder, parts.positions, parts.extra_embeddings)
        self.keep_features: Callable[[Block, Tensor], None] | None = None
        """called with the features of each block, R x W x D, which the next pass overwrites; None: nobody reads them"""
        self._layers = copy.copy(parts.layers)  # the same weights, with the sources of a bucket
        self._is_exact = self.backend.arithmetic.bit_exact  # kernels compute passes of any size

    @property
    def kernels(self) -> Any:
        """What computes passes of few tokens, and chooses; None: there is nothing, or a kernel has failed."""
        return self._kernels if self._kernels is not None and self._kernels.computes(1) else None

    def shape_of(self, width: int, last_start: int) -> Shape | None:
        """The sizes of a pass over blocks, for which the cache then has room; None: it is too large for a graph."""
        width = width_bucket(width)
        return self.fitting(width, positions_bucket(last_start + width))

    def fitting(self, width: int, keys: int) -> Shape | None:
        """The sizes of a pass with as many rows and sources as the batch; None: it is too large for a graph."""
        cache = self.memory.cache
        shape = Shape(cache.rows, width, keys, cache.source)
        if shape.tokens > MOST_TOKENS and not self._is_exact:
            return None
        cache.reserve(keys)
        return shape

    def allows(self, rules: SearchRules, shape: Shape, first_position: int) -> bool:
        """Whether a graph can choose the tokens: it has bans of padding and of an early EOS, and the longest output."""
        if not rules.are_simple:
            return False
        if self._is_exact:  # another choice has other bits, so no block may decide which one it gets
            return rules.prefix is None
        return first_position >= rules.forced_steps and shape.tokens * self.parts.symbols <= _MOST_SCORES

    def layered(
        self,
        tokens: Tensor,
        positions: Tensor,
        shape: Shape,
        *,
        reach: Tensor | None = None,
        wanted: Tensor | None = None,
        paths: Tensor | None = None,
    ) -> Tensor:
        """As `Decoder.features`, for a graph: the host knows sizes alone.

        Args:
            tokens: R x W.
            positions: of the tokens, R x W; consecutive but for `paths`.
            shape: the sizes; the cache has room for them.
            reach: R x W, see `Decoder.features`.
            wanted: R x k, see `Decoder.features`.
            paths: R x W x L, see `TreeBlock`; None: a block.

        Returns:
            R x W x D, or R x k x D.
        """
        parts, kernels, cache = self.parts, self.kernels, self.memory.cache
        sources = cache.sources(shape.rows)
        by_kernels = kernels is not None and kernels.computes(shape.tokens)
        if by_kernels and kernels.embeds:
            x = kernels.embedded(tokens, positions, shape.keys)
        else:
            x = parts.placed(parts.embed(tokens), positions, shape.keys)
        if by_kernels:
            x = kernels.layered(x, cache.memory_of(shape.rows), positions, sources, reach, wanted, paths)
            return parts.features(x)
        layers, of_rows = self._layers, cache.of_rows(shape.rows)
        layers.attend_to(*sources)
        if paths is None:
            x = layers.block(x, of_rows, positions, shape.keys, reach=reach, wanted=wanted)
        else:
            x = layers.tree(x, of_rows, positions, paths, shape.keys)
        return parts.features(x)

    def chosen(
        self, features: Tensor, tokens: Tensor, at: Tensor, limits: Tensor, pad: int, eos: int, judges: bool
    ) -> Tensor:
        """The vectors of `Chosen`, but for `read`, as rows, in fp32, which holds tokens below 2^24 exactly.

        Args:
            features: N x D.
            tokens: R x W.
            at: the position of each token, N.
            limits: see `LIMITS`; `pad` and `eos` are the first two.
            judges: whether draft tokens are judged.
        """
        if self.kernels is not None:
            following = F.pad(tokens[:, 1:], (0, 1)).flatten() if judges else None
            logits = self.parts.project(features)
            found = self.kernels.chosen(logits, at, limits, following, self.memory.temperature).T
            return found if judges else found[:2]
        choice, min_len, max_len = self.backend.choice, limits[2], limits[3]
        count = 1 if choice.reads_wait else min(2, self.parts.symbols)  # see `choose_block`
        early = at < torch.minimum(min_len, max_len)
        values, names, whole = self.likeliest(features, count, pad, eos, early)
        end = torch.full_like(at, eos)[:, None]
        best = torch.where(at >= max_len, eos, resolve_ties(choice, names, values, whole))
        log_probs = torch.where(at >= max_len, whole.gather(1, end).squeeze(1), values[:, 0])
        vectors = [best, log_probs]
        if judges:
            drafted = whole.gather(1, F.pad(tokens[:, 1:], (0, 1)).view(-1, 1))
            vectors += [at >= max_len, drafted.squeeze(1), (whole[:] > drafted).sum(dim=1)]
        return torch.stack([vector.float() for vector in vectors])

    @torch.no_grad()
    def likeliest(self, features: Tensor, count: int, pad: int, eos: int, early: Tensor) -> Best:
        """`plain.choice.likeliest` over features, N x D; EOS is banned where it is `early`, N."""
        return self.backend.choice.likeliest(
            self.parts.scores(features, self.memory.temperature), count, Bans(pad, eos, early)
        )
