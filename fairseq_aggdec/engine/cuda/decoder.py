"""A decoder whose passes are captured as CUDA graphs.

The host keeps the texts, the device the numbers. A pass gets its tokens, positions and limits in one copy, computes the
layers and the choice, and returns the choices in one copy; the host waits once. Sizes are rounded up to a few, so that
few graphs serve all passes; the rows and columns that fill a pass up change nothing that is read.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock
from fairseq_aggdec.decoding.blocks import Block, Chosen, Ragged
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.choose_backend import backend_of_graphs
from fairseq_aggdec.engine.cuda.buffers import (
    MOST_TOKENS,
    StaticCache,
    positions_bucket,
    tree_width_bucket,
    width_bucket,
)
from fairseq_aggdec.engine.cuda.graphs import Function, Graph, Graphs
from fairseq_aggdec.engine.plain.choice import Bans, Choices, LogProbs, resolve_ties
from fairseq_aggdec.engine.plain.layers import DecoderLayers
from fairseq_aggdec.engine.supported_models import STOCK_DECODERS

Behind = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, ...]]
"""from a block's tokens and their positions, R x W, `_limits_of` the rules, and features, to results of a `Graph`"""

_LIMITS = 4
"""numbers of `_limits_of`, at the beginning of what a pass reads"""

_MOST_SCORES = 2**27
"""N x V above which the scores of a pass are not computed in a graph: they stay in its memory"""
_CPU = torch.device("cpu")


class Shape(NamedTuple):
    """The sizes of a pass."""

    rows: int
    width: int
    keys: int
    """number of cached positions to attend to"""
    source: int

    @property
    def tokens(self) -> int:
        return self.rows * self.width


class GraphDecoder(BlockDecoder):
    """A `BlockDecoder` over buffers that stay where they are. What a graph cannot do it computes as its base."""

    def __init__(
        self,
        decoder: TransformerDecoderBase,
        kinds: tuple[type, ...] = STOCK_DECODERS,
        arithmetic: Arithmetic = AS_THE_MODEL,
        further: Tensor | None = None,
        kernels: bool = False,
    ) -> None:
        """See `BlockDecoder`; `kernels`: by Triton, where they are the faster way."""
        words = decoder.embed_tokens.weight
        self.device = words.device
        backend = backend_of_graphs(words, arithmetic, kernels)
        super().__init__(decoder, kinds, arithmetic, further, backend)
        self.graphs = Graphs.on(self.device)
        heads, head_dim = self._heads, decoder.layers[0].self_attn.head_dim
        self._cache: StaticCache = StaticCache(len(decoder.layers), heads, head_dim, self._cache_moved)
        self._static_layers = copy.copy(self._layers)  # the same weights, with the sources of a bucket
        self._further = None if further is None else further.detach()
        self.reads_further, self.can_be_ragged = further is not None, False
        self._kernels: Any = backend.decoder_kernels(decoder, self._positions, self._further)
        self._keeps_features = False
        """whether the features of a pass are kept"""

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        self._temperature = temperature
        memory, masks = encoder_out["encoder_out"][0].detach().transpose(0, 1), encoder_out["encoder_padding_mask"]
        self._cache.start_with(self._cross_of(memory), masks[0] if masks else None)
        self._cross, self._padding = self._cache.sources(memory.size(0))
        self._layers.attend_to(self._cross, self._padding)

    def verify(self, block: Block, rules: SearchRules, ranks: int = 0, sequence: Tensor | None = None) -> Chosen:
        shape = self._shape(block)
        if shape is None or not self._can_choose(shape, rules, block.first_start):
            return super().verify(block, rules, ranks, sequence)
        choose = partial(self._choose, pad=rules.pad, eos=rules.eos, judges=ranks > 0)
        graph = self._ran(block, shape, rules, ("choice", rules.pad, rules.eos, ranks > 0), choose)
        found = graph.read().view(-1, shape.rows, shape.width)[:, : len(block.lasts), : block.ragged.width]
        ragged = block.ragged if block.ragged.is_full else Ragged.of(block.ragged.widths, _CPU)
        read, tokens, log_probs, forced, *judged = (ragged.pack(part).clone() for part in found)
        drafted, higher = judged or (None, None)
        return Chosen(read.long(), tokens.long(), log_probs, forced.bool(), drafted, higher)

    def score(self, block: Block) -> Iterator[Tensor]:
        shape = self._shape(block)
        if shape is None:
            yield from super().score(block)
            return
        graph = self._ran(
            block, shape, None, ("features",), lambda tokens, at, limits, features: (limits[:0], features)
        )
        yield from self._logits(block.ragged.pack(graph.results[1][: len(block.lasts), : block.ragged.width]))

    def verify_tree(
        self, block: TreeBlock, rules: SearchRules, count: int, sequences: Tensor | None = None
    ) -> Iterator[Entries]:
        ragged, last = block.ragged, block.last_position
        width = tree_width_bucket(ragged.width)
        shape = self._fitting(width, positions_bucket(block.end))
        if shape is None or not self._can_choose(shape, rules, block.first_position) or last >= rules.max_len:
            yield from super().verify_tree(block, rules, count, sequences)
            return
        longest = positions_bucket(last + 1)
        key = ("tree", *shape, longest, count, rules.pad, rules.eos, self._temperature)
        make = partial(self._tree_pass, shape, longest, count, rules.pad, rules.eos)
        graph = self.graphs.get(key, _LIMITS + shape.tokens * (2 + longest), lambda: (make(), ()))
        numbers = graph.numbers()
        numbers[:_LIMITS] = _limits_of(rules)
        # rows and columns that fill up read what is read anyway, or the first position of no sentence
        table = numbers[_LIMITS:].view(shape.rows, shape.width, 2 + longest).zero_()
        own = table[: len(ragged.widths)]
        spread = ragged.spread(torch.cat([block.tokens[:, None], block.positions[:, None], block.paths], dim=1))
        own[:, : ragged.width, : spread.size(2)] = spread
        own[:, : ragged.width, spread.size(2) :] = spread[..., -1:]
        own[:, ragged.width :] = own[:, ragged.width - 1 : ragged.width]
        self.graphs.run(graph)
        values, names = graph.read().view(2, shape.rows, shape.width, count)[:, : len(own), : ragged.width].unbind()
        places = (ragged.rows * shape.width + ragged.columns).tolist()
        whole = _Whole(
            places, partial(self._whole, graph.results[1].clone(), graph.results[2].clone(), rules.pad, rules.eos)
        )
        yield Entries(ragged.pack(values).clone(), ragged.pack(names).long(), whole)

    def layered(
        self, tokens: Tensor, starts: Tensor, shape: Shape, reach: Tensor | None = None, wanted: Tensor | None = None
    ) -> Tensor:
        """As `features`, for a graph: the host knows sizes alone.

        Args:
            tokens: R x W.
            starts: R, the position of each row's first token.
            shape: the sizes; the cache has room for them.
            reach: R x W, see `features`.
            wanted: R x k, see `features`.

        Returns:
            R x W x D, or R x k x D.
        """
        positions = starts[:, None] + torch.arange(shape.width, device=starts.device)
        x, cache = self._input(tokens, positions, shape.keys), self._cache.of_rows(shape.rows)
        kernels = self._kernels_for(shape.tokens)
        if kernels is not None:
            x = kernels.layered(x, cache, positions, self._cache.sources(shape.rows), reach, wanted)
        else:
            x = self._attending(shape.rows).block_at(x, cache, positions, shape.keys, reach, wanted)
        return self._projected(x)

    def _kernels_for(self, tokens: int) -> Any:
        """The kernels, where they compute a pass of this many tokens."""
        return self._kernels if self._kernels is not None and self._kernels.computes(tokens) else None

    def _input(self, tokens: Tensor, positions: Tensor, end: int) -> Tensor:
        """The input of the first layer, R x W -> R x W x D, at positions below `end`."""
        kernels = self._kernels_for(tokens.numel())
        if kernels is not None and kernels.embeds:
            embedded: Tensor = kernels.embedded(tokens, positions, end)
            return embedded
        return self._placed(self.embed(tokens), positions, end)

    def shape_of(self, width: int, last_start: int) -> Shape | None:
        """The sizes of a pass over blocks, for which the cache then has room; None: it is too large for a graph."""
        width = width_bucket(width)
        return self._fitting(width, positions_bucket(last_start + width))

    def embed(self, block: Tensor) -> Tensor:
        if self._further is None:
            return super().embed(block)
        beyond = block - self._decoder.embed_tokens.num_embeddings
        known = super().embed(torch.where(beyond < 0, block, 0))
        return torch.where((beyond < 0)[..., None], known, self._further[beyond.clamp(min=0)])

    def _shape(self, block: Block) -> Shape | None:
        return self.shape_of(block.ragged.width, block.last_start)

    def _fitting(self, width: int, keys: int) -> Shape | None:
        shape = Shape(self._cache.rows, width, keys, self._cache.source)
        if shape.tokens > MOST_TOKENS:
            return None
        self._cache.reserve(keys)
        return shape

    def _can_choose(self, shape: Shape, rules: SearchRules, first_position: int) -> bool:
        """Whether a graph chooses: it knows bans of padding and of an early EOS, and the longest output."""
        has_more = rules.unk_penalty or rules.suppressed or rules.no_repeat_ngram_size > 1
        forced_steps = 0 if rules.prefix is None else min(rules.prefix.size(1), rules.max_len)
        is_plain = not has_more and rules.source_lengths is None and first_position >= forced_steps
        return is_plain and shape.tokens * self.symbols <= _MOST_SCORES

    def _ran(
        self,
        block: Block,
        shape: Shape,
        rules: SearchRules | None,
        kind: tuple[Any, ...],
        behind: Behind,
    ) -> Graph:
        """Run a pass over a block, without waiting.

        `rules`: those that `behind` reads; `kind`: the part of the key that tells one `behind` from another.
        """
        rows, seen = len(block.lasts), not self.backend.waits or block.draft.device != self.device
        key = (*kind, *shape, seen, self._temperature)
        make = partial(self._block_pass, shape, seen, behind)
        graph = self.graphs.get(key, _LIMITS + shape.rows * (1 + shape.width), make)
        numbers = graph.numbers()
        if rules is not None:
            numbers[:_LIMITS] = _limits_of(rules)
        # rows that fill up read symbol 0 at position 0
        table = numbers[_LIMITS:].view(shape.rows, 1 + shape.width).zero_()
        table[:rows, :2] = torch.tensor([block.known_starts, block.lasts]).T
        into = table[:rows, 2:] if seen else graph.inputs[0][:rows]
        drafted = block.ragged.width - 1
        into[:, :drafted] = block.draft[:, :drafted]
        self.graphs.run(graph)
        if len(graph.results) > 1:
            self._take(block, graph.results[1])
        return graph

    def _take(self, block: Block, features: Tensor) -> None:
        """Take the features of a pass where they are kept, R x W x D, until the next pass."""

    def _block_pass(self, shape: Shape, seen: bool, behind: Behind) -> tuple[Function, list[Tensor]]:
        """The function of a pass over blocks, and its input: drafts that the host has not seen, unless `seen`."""
        drafts = [] if seen else [torch.zeros(shape.rows, shape.width - 1, dtype=torch.long, device=self.device)]

        def read_block(numbers: Tensor) -> tuple[Tensor, ...]:
            starts, tokens = numbers[_LIMITS:].view(shape.rows, 1 + shape.width).split([1, shape.width], dim=1)
            if drafts:
                tokens = torch.cat([tokens[:, :1], drafts[0]], dim=1)
            features = self.layered(tokens, starts[:, 0], shape)
            positions = starts + torch.arange(shape.width, device=self.device)
            return behind(tokens, positions, numbers[:_LIMITS], features)

        return read_block, drafts

    def _choose(
        self, tokens: Tensor, positions: Tensor, limits: Tensor, features: Tensor, *, pad: int, eos: int, judges: bool
    ) -> tuple[Tensor, ...]:
        """The vectors of a `Chosen`, fp32, which holds tokens below 2^24 exactly; see `Behind`."""
        at, choice, following = positions.flatten(), self.backend.choice, F.pad(tokens[:, 1:], (0, 1)).flatten()
        kept = [features] if self._keeps_features else []
        if self._kernels is not None:
            logits = self.project(features.flatten(0, 1))
            found = self._kernels.chosen(logits, at, limits, following if judges else None, self._temperature).T
            return torch.cat([tokens.view(1, -1).float(), found[: 5 if judges else 3]]), *kept
        logits = self._scores(features.flatten(0, 1))
        count = 1 if choice.waits else min(2, self.symbols)  # see `RuledChoice.choose`
        values, names, whole = choice.likeliest(logits, count, Bans(pad, eos, at < limits[2:].amin()))
        own, forced = (
            Choices(resolve_ties(choice, names, values, whole), values[:, 0], values, whole, None),
            at >= limits[3],
        )
        end = torch.full_like(at, eos)
        best = torch.where(forced, end, own.tokens)
        vectors = [tokens.flatten(), best, torch.where(forced, own.score_of(end), own.log_probs), forced]
        if judges:
            drafted = own.score_of(following)
            vectors += [drafted, (whole[:] > drafted[:, None]).sum(dim=1)]
        return torch.stack([vector.float() for vector in vectors]), *kept

    def _tree_pass(self, shape: Shape, longest: int, count: int, pad: int, eos: int) -> Function:
        """The function of a pass over trees with paths of `longest` slots, which finds `count` entries."""

        def read_tree(numbers: Tensor) -> tuple[Tensor, ...]:
            table = numbers[_LIMITS:].view(shape.rows, shape.width, -1)
            tokens, positions, paths = table[..., 0], table[..., 1], table[..., 2:]
            x, cache = self._input(tokens, positions, longest), self._cache.of_rows(shape.rows)
            kernels = self._kernels_for(shape.tokens)
            if kernels is not None:
                x = kernels.layered(x, cache, positions, self._cache.sources(shape.rows), paths=paths)
            else:
                x = self._attending(shape.rows).tree_at(x, cache, positions, paths, shape.keys)
            features, at, limits = self._projected(x).flatten(0, 1), positions.flatten(), numbers[:_LIMITS]
            early = at < limits[2]
            if self._kernels is None:
                values, names, _ = self.backend.choice.likeliest(self._scores(features), count, Bans(pad, eos, early))
            else:
                values, names = self._kernels.best_entries(self.project(features), at, limits, count, self._temperature)
            return torch.stack([values, names.float()]), features, early

        return read_tree

    @torch.no_grad()
    def _whole(self, features: Tensor, early: Tensor, pad: int, eos: int) -> LogProbs | Tensor:
        """All log-probabilities behind the tokens of a tree, with the bits that its graph has found."""
        return self.backend.choice.likeliest(self._scores(features), 1, Bans(pad, eos, early))[2]

    def _attending(self, rows: int) -> DecoderLayers:
        """The layers, attending to the sources of the first rows."""
        self._static_layers.attend_to(*self._cache.sources(rows))
        return self._static_layers

    def _cache_moved(self, capacity: int) -> None:
        if self._positions is not None:
            self._positions.reaching(capacity)  # now, since a table that grows moves
        self.graphs.clear()


class _Whole:
    """`beam.roles.Entries.whole`, computed when it is first read: only ties need it."""

    def __init__(self, places: Sequence[int], compute: Callable[[], LogProbs | Tensor]) -> None:
        """`places`: the row of each entry in the result of `compute`."""
        self._places, self._compute = places, compute
        self._rows: LogProbs | Tensor | None = None

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row: int) -> Tensor:
        if self._rows is None:
            self._rows = self._compute()
        return self._rows[self._places[row]]


def _limits_of(rules: SearchRules) -> Tensor:
    return torch.tensor([rules.pad, rules.eos, rules.min_len, rules.max_len])
