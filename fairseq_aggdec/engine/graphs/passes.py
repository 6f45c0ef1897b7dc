"""What a decoder's passes compute, as functions that a graph can capture: the host knows sizes alone.

A pass gets its limits and a table, a row for each sentence, in one copy, computes the layers and the choice, and
returns the choices in one copy. Functions hold no graphs: those would keep their memory until Python's collector runs.
"""

import copy
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import Bans, SearchRules
from fairseq_aggdec.engine.graphs.buffers import StaticCache
from fairseq_aggdec.engine.graphs.graph_cache import Function
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.choice import Best, resolve_ties
from fairseq_aggdec.engine.runner import ChooseDraft, ChooseProposals, DraftBlock

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
    """cached positions to attend to"""
    source: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.width} tokens, {self.keys} positions, sources of {self.source}"

    @property
    def tokens(self) -> int:
        return self.rows * self.width


class Chooser(NamedTuple):
    """What the choice of a pass has built in."""

    pad: int
    eos: int
    temperature: float


class Passes:
    """The passes of a decoder over static buffers."""

    def __init__(self, parts: Parts, cache: StaticCache) -> None:
        """Raises `ValueError` where kernels do not support the decoder."""
        self.parts = parts
        self.backend = parts.backend
        self.device = parts.device
        self._cache = cache
        self._kernels = self.backend.decoder_kernels(
            parts.decoder, parts.positions, parts.extra_embeddings
        )
        # the same weights, with the sources of a bucket
        self._layers = copy.copy(parts.layers)

    @property
    def kernels(self) -> Any:
        """What computes passes of few tokens, and chooses; None: there is nothing, or a kernel has failed."""
        return (
            self._kernels
            if self._kernels is not None and self._kernels.computes(1)
            else None
        )

    def features(
        self,
        tokens: Tensor,
        positions: Tensor,
        shape: Shape,
        *,
        reach: Tensor | None = None,
        wanted: Tensor | None = None,
        paths: Tensor | None = None,
    ) -> Tensor:
        """As `Eager.features`.

        Args:
            tokens: R x W.
            positions: of the tokens, R x W; consecutive but for `paths`.
            shape: the sizes; the cache has room for them.
            reach: R x W, see `Eager.features`.
            wanted: R x k, see `Eager.features`.
            paths: R x W x L, see `TreeBlock`; None: a block.

        Returns:
            R x W x D, or R x k x D.
        """
        parts = self.parts
        cache = self._cache
        kernels = self.kernels
        sources = cache.sources(shape.rows)

        # the input of the first layer
        by_kernels = kernels is not None and kernels.computes(shape.tokens)
        if by_kernels and parts.adds_embeddings:
            x = kernels.embedded(parts.inputs(tokens), positions, shape.keys)
        else:
            x = parts.placed(parts.embed(tokens), positions, shape.keys)

        # the layers
        if by_kernels:
            x = kernels.layered(
                x, cache.memory_of(shape.rows), positions, sources, reach, wanted, paths
            )
            return parts.features(x)
        layers = self._layers
        layers.attend_to(*sources)
        of_rows = cache.of_rows(shape.rows)
        if paths is None:
            x = layers.block(
                x, of_rows, positions, shape.keys, reach=reach, wanted=wanted
            )
        else:
            x = layers.tree(x, of_rows, positions, paths, shape.keys)
        return parts.features(x)

    def chosen(
        self,
        features: Tensor,
        tokens: Tensor,
        at: Tensor,
        limits: Tensor,
        chooser: Chooser,
        judges: bool,
    ) -> Tensor:
        """Of each token the best one after it and its log-probability; of draft tokens, too, whether EOS is forced in
        their place, and the draft tokens' log-probability and rank. In fp32, which holds tokens below 2^24 exactly.

        Args:
            features: N x D.
            tokens: R x W.
            at: the position of each token, N.
            limits: see `LIMITS`; the first two are those of `chooser`.
            judges: whether draft tokens are judged.
        """
        following = F.pad(tokens[:, 1:], (0, 1)).flatten() if judges else None
        if self.kernels is not None:
            logits = self.parts.project(features)
            found = self.kernels.chosen(
                logits, at, limits, following, chooser.temperature
            ).T
            return found if judges else found[:2]
        choice = self.backend.choice
        # see `choose_block`
        count = 1 if choice.sync_is_costly else min(2, self.parts.symbols)
        values, names, scores = self.likeliest(features, at, limits, count, chooser)
        must_end = at >= limits[3]
        end = torch.full_like(at, chooser.eos)[:, None]
        best = resolve_ties(choice, names, values, scores)
        vectors = [
            torch.where(must_end, chooser.eos, best),
            torch.where(must_end, scores.gather(1, end).squeeze(1), values[:, 0]),
        ]
        if following is not None:
            drafted = scores.gather(1, following[:, None])
            vectors += [must_end, drafted.squeeze(1), (scores[:] > drafted).sum(dim=1)]
        return torch.stack([vector.float() for vector in vectors])

    @torch.no_grad()
    def likeliest(
        self, features: Tensor, at: Tensor, limits: Tensor, count: int, chooser: Chooser
    ) -> Best:
        """`plain.choice.likeliest` over features, N x D, with padding and an early EOS banned; no EOS is forced."""
        is_early = at < torch.minimum(limits[2], limits[3])
        scores = self.parts.scores(features, chooser.temperature)
        return self.backend.choice.likeliest(
            scores, count, Bans(chooser.pad, chooser.eos, is_early)
        )

    def with_forced_end(
        self, scores: Tensor, at: Tensor, limits: Tensor, chooser: Chooser
    ) -> Tensor:
        """Log-probabilities, N x V, of EOS alone where a text must end."""
        others = torch.arange(self.parts.symbols, device=self.device) != chooser.eos
        return scores.masked_fill((at >= limits[3])[:, None] & others, -torch.inf)


def block_pass(
    passes: Passes,
    shape: Shape,
    chooser: Chooser | None,
    judges: bool,
    keeps: bool,
    is_on_host: bool,
) -> tuple[Function, list[Tensor]]:
    """A pass over a block: its table has each row's start, its last token and its draft.

    Args:
        shape: the sizes.
        chooser: None: nothing is chosen, and features are all that is returned.
        judges: whether draft tokens are scored, too.
        keeps: whether features are returned beside the choices.
        is_on_host: whether the table has the drafts; if not, the host gets all tokens before the choices.

    Returns:
        From the pass's input to the vectors of `chosen`, and to features, R x W x D; the drafts, R x (W - 1), unless
        they are on the host.
    """
    columns = torch.arange(shape.width, device=passes.device)
    drafts = []
    if not is_on_host:
        drafts.append(columns.new_zeros(shape.rows, shape.width - 1))

    def read_block(inputs: Tensor) -> tuple[Tensor, ...]:
        # tokens and positions
        limits = inputs[:LIMITS]
        table = inputs[LIMITS:].view(shape.rows, -1)
        tokens = table[:, 1:]
        if drafts:
            tokens = torch.cat([table[:, 1:2], *drafts], dim=1)
        positions = table[:, :1] + columns

        # the pass, and what is chosen after each token
        features = passes.features(tokens, positions, shape)
        if chooser is None:
            return limits[:0], features
        found = passes.chosen(
            features.flatten(0, 1),
            tokens,
            positions.flatten(),
            limits,
            chooser,
            judges,
        )
        if drafts:
            found = torch.cat([tokens.reshape(1, -1).float(), found])
        return (found, features) if keeps else (found,)

    return read_block, drafts


def tree_pass(passes: Passes, shape: Shape, count: int, chooser: Chooser) -> Function:
    """A pass over trees: its table has token, position and path of each prefix.

    Returns from the pass's input to the best `count` log-probabilities and tokens, 2 x N x `count`, and to all
    log-probabilities where the host may need them.
    """
    waits = passes.backend.sync_is_costly

    def read_tree(inputs: Tensor) -> tuple[Tensor, ...]:
        limits = inputs[:LIMITS]
        table = inputs[LIMITS:].view(shape.rows, shape.width, -1)
        tokens = table[..., 0]
        positions = table[..., 1]
        paths = table[..., 2:]
        features = passes.features(tokens, positions, shape, paths=paths).flatten(0, 1)
        at = positions.flatten().contiguous()
        if passes.kernels is None or not waits:
            values, names, scores = passes.likeliest(
                features, at, limits, count, chooser
            )
        if passes.kernels is not None:
            logits = passes.parts.project(features)
            values, names = passes.kernels.best_entries(
                logits, at, limits, count, chooser.temperature
            )
        best = torch.stack([values, names.float()])
        if waits:
            return (best,)
        return best, passes.with_forced_end(scores[:], at, limits, chooser)

    return read_tree


def draft_pass(
    passes: Passes, shape: Shape, block_size: int, choose: ChooseDraft
) -> Function:
    """A pass of a block drafter, whose table is that of a `DraftBlock`; it returns draft tokens, R x k."""
    columns = torch.arange(shape.width, device=passes.device)

    def read_masks(inputs: Tensor) -> tuple[Tensor, ...]:
        table = inputs[LIMITS:].view(shape.rows, -1)
        lasts, starts, tokens, reach, wanted = DraftBlock.split(
            table, shape.width, block_size
        )
        features = passes.features(
            tokens, starts + columns, shape, reach=reach, wanted=wanted
        )
        return inputs[:0], choose(features, lasts[:, 0])

    return read_masks


def heads_pass(passes: Passes, features: Tensor, choose: ChooseProposals) -> Function:
    """A pass of proposal heads over these features, R x W x D: its table has each row's column."""
    rows = torch.arange(features.size(0), device=passes.device)

    def propose(inputs: Tensor) -> tuple[Tensor, ...]:
        return inputs[:0], choose(features[rows, inputs[LIMITS:]])

    return propose
