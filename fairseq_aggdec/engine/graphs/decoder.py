"""A decoder whose passes are captured as CUDA graphs.

The host keeps the texts, the device the numbers. A pass gets its tokens, positions and limits in one copy, computes the
layers and the choice, and returns the choices in one copy; the host waits once. Sizes are rounded up to a few, so that
few graphs serve all passes; the rows and columns that fill a pass up change nothing that is read.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, Order
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.choose_backend import backend_of_graphs
from fairseq_aggdec.engine.graphs.buffers import (
    MOST_TOKENS,
    StaticCache,
    positions_bucket,
    rows_bucket,
    tree_width_bucket,
    width_bucket,
)
from fairseq_aggdec.engine.graphs.graphs import Function, Graph, Graphs
from fairseq_aggdec.engine.plain.choice import Bans, Choices, LogProbs, resolve_ties
from fairseq_aggdec.engine.supported_models import STOCK_DECODERS

_MOST_SCORES = 2**27
"""N x V above which the scores of a pass are not computed in a graph: they stay in its memory"""
_LIMITS = 4
"""the input of a pass begins with `pad`, `eos`, `min_len` and `max_len` of the rules"""


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


class GraphDecoder(BlockDecoder):
    """A `BlockDecoder` whose passes run as CUDA graphs over static buffers; other passes run as its base class's."""

    def __init__(
        self,
        decoder: TransformerDecoderBase,
        kinds: tuple[type, ...] = STOCK_DECODERS,
        arithmetic: Arithmetic = AS_THE_MODEL,
        extra_embeddings: Tensor | None = None,
        kernels: bool = False,
    ) -> None:
        """See `BlockDecoder`; `kernels`: by Triton, where they are the faster way."""
        words = decoder.embed_tokens.weight
        self.device = words.device
        backend = backend_of_graphs(words, arithmetic, kernels)
        super().__init__(decoder, kinds, arithmetic, extra_embeddings, backend)
        self.graphs = Graphs.on(self.device, self._drop_kernels)
        heads, head_dim = self._heads, decoder.layers[0].self_attn.head_dim
        self._cache: StaticCache = StaticCache(len(decoder.layers), heads, head_dim, self._cache_moved)
        self._static_layers = copy.copy(self._layers)  # the same weights, with the sources of a bucket
        self._extra_embeddings = None if extra_embeddings is None else extra_embeddings.detach()
        self.reads_extra_embeddings, self.can_be_ragged = extra_embeddings is not None, False
        self._kernels: Any = backend.decoder_kernels(decoder, self._positions, self._extra_embeddings)
        self._is_exact = arithmetic.bit_exact
        """whether kernels compute passes of any size"""
        self._keeps_features = False
        """whether the features of a pass are kept"""

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        self._temperature = temperature
        states, masks = encoder_out["encoder_out"][0].detach(), encoder_out["encoder_padding_mask"]
        length, batch_size, _ = states.shape
        self._cache.start_with(batch_size, length, states)
        rows, source = self._cache.rows, self._cache.source

        def make() -> tuple[Function, Sequence[Tensor]]:
            memory = torch.zeros(rows, source, states.size(2), dtype=states.dtype, device=self.device)
            hidden = torch.zeros(rows, source, dtype=torch.bool, device=self.device)

            def fill(numbers: Tensor) -> tuple[Tensor, ...]:
                self._cache.fill(self._cross_of(memory), hidden)
                return (numbers,)

            return fill, (memory, hidden)

        graph = None if rows * source > MOST_TOKENS else self.graphs.get(("start", rows, source), 0, make)
        fill, (memory, hidden) = make() if graph is None else (lambda _: self.graphs.run(graph), graph.inputs)
        # zeros in place of an earlier batch's states: zero times NaN is NaN
        memory.zero_()[:batch_size, :length] = states.transpose(0, 1)
        hidden.zero_()[:batch_size, length:] = True
        if masks:
            hidden[:batch_size, :length] = masks[0]
        fill(hidden[:0])
        self._cross, self._padding = self._cache.sources(batch_size)

    def keep(self, order: Order) -> None:
        places, rows = order.moves
        if places:
            assert set(places).isdisjoint(rows), "a pass must change nothing when it is repeated"
            source, count = self._cache.source, rows_bucket(len(places))
            graph = self.graphs.get(("keep", count, source), 2 * count, lambda: (self._cache.move, ()))
            numbers = graph.numbers().reshape(2, count)
            numbers[:, : len(places)], numbers[:, len(places) :] = (places, rows), [places[:1], rows[:1]]
            self.graphs.run(graph)
        self._cache.shrink(len(order.rows))
        self._cross, self._padding = self._cache.sources(len(order.rows))

    def features(self, block: Tensor | None, starts: Tensor, last_start: int, **options: Any) -> Tensor:
        self._layers.attend_to(self._cross, self._padding)  # here alone: graphs have layers of their own
        return super().features(block, starts, last_start, **options)

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        self._layers.attend_to(self._cross, self._padding)
        return super().score_tree(block)

    def verify(self, block: Block, rules: SearchRules, ranks: int = 0, sequence: Tensor | None = None) -> Chosen:
        shape = self.shape_of(block.ragged.width, block.last_start)
        common = rules.common_prefix if block.last_start == 0 else []
        forced = len(common[0]) if common else 0  # the block begins with these tokens after the first
        if shape is None or not self._can_choose(shape, rules, block.first_start + forced):
            return super().verify(block, rules, ranks, sequence)
        graph = self._ran(block, shape, rules, ranks > 0 or forced > 0)
        found, rows, ragged = graph.read().reshape(-1, shape.rows, shape.width), len(block.lasts), block.ragged
        # copies, since the next pass overwrites what it reads and finds; by numpy, whose operations take less time
        inside: Any = (slice(rows), slice(ragged.width))
        if not ragged.is_full:
            inside = np.arange(shape.width) < np.array([*ragged.widths, *[0] * (shape.rows - rows)])[:, None]
        seen = () if graph.inputs else (graph.numbers()[_LIMITS:].reshape(shape.rows, -1)[:, 1:],)
        names, numbers = [*seen, *found][:2], found[2 - len(seen) :]
        if forced:
            names[1][:, :forced], numbers[0][:, :forced] = names[0][:, 1 : 1 + forced], numbers[2][:, :forced]
            numbers = numbers if ranks else numbers[:1]
        read, tokens = (torch.from_numpy(vector[inside].astype(np.int64).ravel()) for vector in names)
        log_probs, *judged = (torch.from_numpy(vector[inside].flatten()) for vector in numbers)
        if judged:
            judged[0] = judged[0].bool()
        return Chosen(read, tokens, log_probs, *judged)

    def score(self, block: Block) -> Iterator[Tensor]:
        shape = self.shape_of(block.ragged.width, block.last_start)
        if shape is None:
            yield from super().score(block)
        else:
            features = self._ran(block, shape).results[0][: len(block.lasts), : block.ragged.width]
            yield from self._logits(block.ragged.pack(features))

    def verify_tree(
        self, block: TreeBlock, rules: SearchRules, count: int, sequences: Tensor | None = None
    ) -> Iterator[Entries]:
        last = block.last_position
        shape = self._fitting(tree_width_bucket(block.ragged.width), positions_bucket(block.end))
        is_forced = last >= rules.max_len  # the end of a sentence; the kernels know of it
        can_choose = shape is not None and self._can_choose(shape, rules, block.first_position)
        if shape is None or not can_choose or (is_forced and self._kernels is None):
            yield from super().verify_tree(block, rules, count, sequences)
            return
        longest = positions_bucket(last + 1)
        key = ("tree", shape, longest, count, rules.pad, rules.eos, self._temperature)
        size = _LIMITS + shape.tokens * (2 + longest)
        graph = self.graphs.get(key, size, lambda: (self._tree_pass(shape, longest, count, rules.pad, rules.eos), ()))
        numbers = graph.numbers()
        numbers[:_LIMITS] = _limits_of(rules)
        table = numbers[_LIMITS:].reshape(shape.rows, shape.width, 2 + longest)
        rows, written = len(block.ragged.widths), block.paths.size(1)
        tokens, at, paths = (part.numpy() for part in (block.tokens, block.positions, block.paths))
        is_own: Any = slice(None)
        if not (block.ragged.is_full and block.ragged.width == shape.width):
            widths, columns = np.array(block.ragged.widths)[:, None], np.arange(shape.width)
            ends, is_own = widths.cumsum(axis=0), columns < widths
            # a sentence's last prefix fills up its row
            read = np.minimum(ends - widths + columns, ends - 1).ravel()
            tokens, at, paths = tokens[read], at[read], paths[read]
        own = table[:rows]
        own[..., 0], own[..., 1] = tokens.reshape(own.shape[:2]), at.reshape(own.shape[:2])
        own[..., 2 : 2 + written] = paths.reshape(*own.shape[:2], written)
        own[..., 2 + written :], table[rows:] = own[..., 1 + written, None], 0  # other rows read symbol 0 at position 0
        self.graphs.run(graph)
        values, names = graph.read().reshape(2, shape.rows, shape.width, count)[:, :rows][:, is_own].copy()
        values, names = values.reshape(-1, count), names.reshape(-1, count).astype(np.int64)
        own = np.arange(shape.tokens).reshape(shape.rows, -1)[:rows][is_own].ravel()
        whole = graph.results[0][torch.from_numpy(own)] if graph.results else None
        yield Entries(torch.from_numpy(values), torch.from_numpy(names), whole)

    def continued(self, block: Block, steps: int, rules: SearchRules) -> list[list[int]] | None:
        """The next `steps` tokens of greedy search after each row of a block, B x k; None where no graph does it.

        All but the last are read, too.
        """
        end = block.last_start + block.ragged.width + steps - 1
        shape = self._fitting(width_bucket(block.ragged.width), positions_bucket(end))
        if shape is None or not self._can_choose(shape, rules, block.first_start):
            return None
        key = ("steps", shape, steps, rules.pad, rules.eos)
        size = _LIMITS + shape.rows * (2 + shape.width)
        graph = self.graphs.get(key, size, lambda: (self._steps_pass(shape, steps, rules.pad, rules.eos), ()))
        numbers = graph.numbers()
        numbers.fill(0)
        numbers[:_LIMITS] = _limits_of(rules)
        rows = len(block.lasts)
        table = numbers[_LIMITS:].reshape(shape.rows, -1)[:rows]
        table[:, 0], table[:, 1] = block.known_starts, np.subtract(block.ragged.widths, 1)
        table[:, 2], table[:, 3 : 2 + block.ragged.width] = block.lasts, block.draft.numpy()
        self.graphs.run(graph)
        tokens: list[list[int]] = graph.read().reshape(steps, -1)[:, :rows].T.astype(np.int64).tolist()
        return tokens

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
        """As `features`, for a graph: the host knows sizes alone.

        Args:
            tokens: R x W.
            positions: of the tokens, R x W; consecutive but for `paths`.
            shape: the sizes; the cache has room for them.
            reach: R x W, see `features`.
            wanted: R x k, see `features`.
            paths: R x W x L, see `TreeBlock`; None: a block.

        Returns:
            R x W x D, or R x k x D.
        """
        kernels, sources = self._kernels, self._cache.sources(shape.rows)
        by_kernels = kernels is not None and kernels.computes(shape.tokens)
        if by_kernels and kernels.embeds:
            x = kernels.embedded(tokens, positions, shape.keys)
        else:
            x = self._placed(self.embed(tokens), positions, shape.keys)
        if by_kernels:
            memory = self._cache.memory_of(shape.rows)
            return self._projected(kernels.layered(x, memory, positions, sources, reach, wanted, paths))
        layers, cache = self._static_layers, self._cache.of_rows(shape.rows)
        layers.attend_to(*sources)
        if paths is None:
            x = layers.block(x, cache, positions, shape.keys, reach=reach, wanted=wanted)
        else:
            x = layers.tree(x, cache, positions, paths, shape.keys)
        return self._projected(x)

    def shape_of(self, width: int, last_start: int) -> Shape | None:
        """The sizes of a pass over blocks, for which the cache then has room; None: it is too large for a graph."""
        width = width_bucket(width)
        return self._fitting(width, positions_bucket(last_start + width))

    def embed(self, block: Tensor) -> Tensor:
        if self._extra_embeddings is None:
            return super().embed(block)
        beyond = block - self._decoder.embed_tokens.num_embeddings
        known = super().embed(torch.where(beyond < 0, block, 0))
        return torch.where((beyond < 0)[..., None], known, self._extra_embeddings[beyond.clamp(min=0)])

    def _fitting(self, width: int, keys: int) -> Shape | None:
        shape = Shape(self._cache.rows, width, keys, self._cache.source)
        if shape.tokens > MOST_TOKENS and not self._is_exact:
            return None
        self._cache.reserve(keys)
        return shape

    def _can_choose(self, shape: Shape, rules: SearchRules, first_position: int) -> bool:
        """Whether a graph can choose the tokens: it has bans of padding and of an early EOS, and the longest output."""
        has_more = rules.unk_penalty or rules.suppressed or rules.no_repeat_ngram_size > 1
        if has_more or rules.source_lengths is not None:
            return False
        if self._is_exact:  # another choice has other bits, so no block may decide which one it gets
            return rules.prefix is None
        forced_steps = 0 if rules.prefix is None else min(rules.prefix.size(1), rules.max_len)
        return first_position >= forced_steps and shape.tokens * self.symbols <= _MOST_SCORES

    def _ran(self, block: Block, shape: Shape, rules: SearchRules | None = None, judges: bool = False) -> Graph:
        """Run a pass over a block, asynchronously. `rules`: it chooses tokens; `judges`: it scores the draft tokens."""
        rows, drafted = len(block.lasts), block.ragged.width - 1
        seen = not self.backend.reads_wait or block.draft.device != self.device
        special = None if rules is None else (rules.pad, rules.eos)
        size = _LIMITS + shape.rows * (1 + shape.width)
        key = ("block", shape, seen, judges, special, self._temperature)
        graph = self.graphs.get(key, size, lambda: self._block_pass(shape, seen, judges, special))
        numbers = graph.numbers()
        numbers.fill(0)  # rows of the bucket beyond the batch read symbol 0 at position 0
        if rules is not None:
            numbers[:_LIMITS] = _limits_of(rules)
        table = numbers[_LIMITS:].reshape(shape.rows, -1)
        table[:rows, 0], table[:rows, 1] = block.known_starts, block.lasts
        if drafted and seen:
            table[:rows, 2 : 2 + drafted] = block.draft[:, :drafted].numpy()
        elif drafted:
            graph.inputs[0][:rows, :drafted] = block.draft[:, :drafted]
        self.graphs.run(graph)
        if graph.results:
            self._take(block, graph.results[0])
        return graph

    def _take(self, block: Block, features: Tensor) -> None:
        """Keep the features of a block, R x W x D, which the next pass overwrites."""

    def _block_pass(
        self, shape: Shape, seen: bool, judges: bool, special: tuple[int, int] | None
    ) -> tuple[Function, list[Tensor]]:
        """The function of `_ran`, and its input: the drafts, unless they are on the host (`seen`)."""
        drafts = [] if seen else [torch.zeros(shape.rows, shape.width - 1, dtype=torch.long, device=self.device)]
        columns = torch.arange(shape.width, device=self.device)

        def read_block(numbers: Tensor) -> tuple[Tensor, ...]:
            limits, table = numbers[:_LIMITS], numbers[_LIMITS:].view(shape.rows, -1)
            starts, tokens = table[:, :1], torch.cat([table[:, 1:2], *drafts], dim=1) if drafts else table[:, 1:]
            positions = starts + columns
            features = self.layered(tokens, positions, shape)
            if special is None:
                return limits[:0], features
            found = self._chosen(features.flatten(0, 1), tokens, positions.flatten(), limits, *special, judges)
            if drafts:
                found = torch.cat([tokens.reshape(1, -1).float(), found])
            return found, *([features] if self._keeps_features else [])

        return read_block, drafts

    def _steps_pass(self, shape: Shape, steps: int, pad: int, eos: int) -> Function:
        """The function of `continued`."""
        columns = torch.arange(shape.width, device=self.device)

        def take_steps(numbers: Tensor) -> tuple[Tensor]:
            limits, table = numbers[:_LIMITS], numbers[_LIMITS:].view(shape.rows, -1)
            starts, last, tokens = table[:, :1], table[:, 1:2], table[:, 2:]
            at, found = starts + last, []
            features = self.layered(tokens, starts + columns, shape, wanted=last)
            while True:
                chosen = self._chosen(features.flatten(0, 1), tokens, at.flatten(), limits, pad, eos, judges=False)
                found.append(chosen[0])
                if len(found) == steps:
                    return (torch.stack(found),)
                tokens, at = found[-1].long()[:, None], at + 1
                features = self.layered(tokens, at, shape._replace(width=1))

        return take_steps

    def _chosen(
        self, features: Tensor, tokens: Tensor, at: Tensor, limits: Tensor, pad: int, eos: int, judges: bool
    ) -> Tensor:
        """The vectors of `Chosen`, but for `read`, as rows, in fp32, which holds tokens below 2^24 exactly.

        Args:
            features: N x D.
            tokens: R x W.
            at: the position of each token, N.
            limits: see `_LIMITS`; `pad` and `eos` are the first two.
            judges: whether draft tokens are judged.
        """
        if self._kernels is not None:
            following = F.pad(tokens[:, 1:], (0, 1)).flatten() if judges else None
            found = self._kernels.chosen(self.project(features), at, limits, following, self._temperature).T
            return found if judges else found[:2]
        choice, min_len, max_len = self.backend.choice, limits[2], limits[3]
        count = 1 if choice.reads_wait else min(2, self.symbols)  # see `RuledChoice.choose`
        early = at < torch.minimum(min_len, max_len)
        values, names, whole = self._likeliest(features, count, pad, eos, early)
        own = Choices(resolve_ties(choice, names, values, whole), values[:, 0], values, whole, at >= max_len)
        end = torch.full_like(at, eos)
        best = torch.where(at >= max_len, end, own.tokens)
        log_probs = torch.where(at >= max_len, own.score_of(end), own.log_probs)
        vectors = [best, log_probs]
        if judges:
            drafted = own.score_of(F.pad(tokens[:, 1:], (0, 1)).flatten())
            vectors += [at >= max_len, drafted, (whole[:] > drafted[:, None]).sum(dim=1)]
        return torch.stack([vector.float() for vector in vectors])

    def _tree_pass(self, shape: Shape, longest: int, count: int, pad: int, eos: int) -> Function:
        """The function of `verify_tree` for paths of `longest` slots."""

        def read_tree(numbers: Tensor) -> tuple[Tensor, ...]:
            table = numbers[_LIMITS:].view(shape.rows, shape.width, 2 + longest)
            tokens, positions, paths = table[..., 0], table[..., 1], table[..., 2:]
            features = self.layered(tokens, positions, shape, paths=paths).flatten(0, 1)
            at, limits = positions.flatten().contiguous(), numbers[:_LIMITS]
            if self._kernels is None or not self.backend.reads_wait:
                values, names, whole = self._likeliest(features, count, pad, eos, at < limits[2])
            if self._kernels is not None:
                values, names = self._kernels.best_entries(self.project(features), at, limits, count, self._temperature)
            found = torch.stack([values, names.float()])
            if self.backend.reads_wait:
                return (found,)
            others = torch.arange(self.symbols, device=self.device) != eos
            return found, whole[:].masked_fill((at >= limits[3])[:, None] & others, -math.inf)

        return read_tree

    @torch.no_grad()
    def _likeliest(
        self, features: Tensor, count: int, pad: int, eos: int, early: Tensor
    ) -> tuple[Tensor, Tensor, LogProbs | Tensor]:
        """`plain.choice.likeliest` over features, N x D; EOS is banned where it is `early`, N."""
        return self.backend.choice.likeliest(self._scores(features), count, Bans(pad, eos, early))

    def _drop_kernels(self, reason: str) -> bool:
        if not self.backend.drop_kernels(reason):
            return False
        self._kernels = None
        return True

    def _cache_moved(self, capacity: int) -> None:
        if self._positions is not None:
            self._positions.reaching(capacity)  # now, since a table that grows moves
        self.graphs.clear()


def _limits_of(rules: SearchRules) -> tuple[int, ...]:
    """The beginning of a pass's input, see `_LIMITS`."""
    return rules.pad, rules.eos, rules.min_len, rules.max_len
