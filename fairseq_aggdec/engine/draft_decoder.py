"""The forward pass of a block drafter's decoder; a causal prefix is read once.

The layers are stock, so the verifier's engine runs them. A block has the tokens that a row has committed since the last
draft, and k masks, which attend to each other. The next block overwrites the cached keys and values of the masks.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import Any
from weakref import proxy

import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Order
from fairseq_aggdec.decoding.top_k import exclude
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import ONE_BY_ONE, Way, choose_backend
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.graphs.captured import Shape
from fairseq_aggdec.engine.graphs.graphs import Function
from fairseq_aggdec.engine.plain.choice import choose_block
from fairseq_aggdec.models.nar_drafter import NarDrafterDecoder

Encode = Callable[[Tensor | None], dict[str, Any]]

_CANDIDATES = 16  # per position; the cost grows with the square, and 64 changes hardly any draft


class LateStart:
    """A model that encodes a batch before its first draft: in a large batch perhaps never."""

    def __init__(self, engine: Any) -> None:
        """`engine`: what decodes, with `start` and `keep` as of `Decoder`."""
        self._engine = engine
        self._encode: Encode | None = None  # to be called before the first draft
        self._rows: Tensor | None = None  # B, the rows still to encode; None: all

    def start(self, encoder_out: dict[str, Any]) -> None:
        """Start a new batch with the output of the drafter's encoder, or of one with the same weights."""
        self.start_later(lambda rows: _rows_of(encoder_out, rows))

    def start_later(self, encode: Encode) -> None:
        """Start a new batch that is encoded before the first draft.

        `encode` returns the encoder output of the given rows of the batch; None: of all rows.
        """
        self._encode, self._rows = encode, None

    def keep(self, order: Order) -> None:
        if self._encode is not None:
            self._rows = order.tensor if self._rows is None else self._rows[order.tensor]
            return
        self._engine.keep(order)
        self._keep(order)

    def begin(self) -> None:
        """Encode the rows that are left, as `start_later` has announced, before the first draft."""
        if self._encode is None:
            return
        encoder_out = self._encode(self._rows)
        self._engine.start(encoder_out)
        self._begun(encoder_out)
        self._encode = self._rows = None

    def _begun(self, encoder_out: dict[str, Any]) -> None:
        """Drop the state of the last batch: the engine has started one with this encoder output."""
        raise NotImplementedError

    def _keep(self, order: Order) -> None:
        """Keep only these rows; the engine has kept them."""
        raise NotImplementedError


class DraftDecoder(LateStart):
    """A `drafters.block.BlockModel` over a `NarDrafterDecoder`.

    A bidirectional prefix attends to the block, so it is read again for every draft. Where passes are captured, a draft
    is one graph; it stays on the device, where the verifier reads it, and the next draft overwrites it.
    """

    _engine: Decoder

    def __init__(
        self, decoder: NarDrafterDecoder, arithmetic: Arithmetic = AS_THE_MODEL, way: Way = ONE_BY_ONE
    ) -> None:
        """The decoder must be in evaluation mode. Raises as `Decoder`."""
        self.max_positions = decoder.max_positions()
        self._decoder = decoder
        self._copies_source = decoder.copy_query is not None
        self.is_causal = decoder.is_causal
        """whether a prefix is cached, since it does not attend to the block"""
        # padding stands for masks whose inputs the caller computes
        self.mask = decoder.padding_idx if self._copies_source else decoder.embed_tokens.num_embeddings
        """the number that stands for a mask in a block"""
        self._transitions = None if decoder.transitions is None else TransitionTables(decoder)
        mask = None if self._copies_source else decoder.mask_embedding[None]
        super().__init__(Decoder(decoder, arithmetic, way, mask))
        self.captured = None if self._copies_source else self._engine.captured
        """drafts that are captured as CUDA graphs; None: none are"""
        self.reads_wait = self._engine.backend.reads_wait
        self._encoder_out: dict[str, list[Tensor]] = {}
        self._read: list[int] = []  # number of cached tokens of each row

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        self.begin()
        captured, shape = self.captured, None
        if captured is not None:
            shape = captured.shape_of(self._width(texts, block_size), max(self._read))
        if captured is None or shape is None:
            return self._choose(*self._block(texts, block_size))
        numbers_of_row, key = 2 + 2 * shape.width + block_size, ("draft", shape, block_size)
        size = shape.rows * numbers_of_row
        graph = captured.graphs.get(key, size, lambda: (self._pass(shape, block_size), ()))
        numbers = graph.numbers().reshape(shape.rows, numbers_of_row)
        numbers[: len(texts)], numbers[len(texts) :] = self._numbers(texts, block_size, shape.width).numpy(), 0
        captured.graphs.run(graph)
        self._have_read(texts)
        return graph.results[0][: len(texts)]

    def choose(
        self, texts: Sequence[Sequence[int]], block_size: int, rules: SearchRules, temperature: float
    ) -> tuple[Tensor, Tensor]:
        logits = self._scores(texts, block_size)
        starts, lasts = [len(text) - 1 for text in texts], [text[-1] for text in texts]
        block = Block.of_draft(lasts, starts, logits.argmax(dim=-1)[:, :-1], None, logits.device)
        sequence = block.sequence(texts, rules.pad) if rules.read_output else None
        if temperature != 1.0:
            logits = logits / temperature
        chosen = choose_block([logits.flatten(0, 1)], self._engine.backend.choice, block, rules, 0, sequence)
        return chosen.tokens.view(logits.shape[:2]), chosen.log_probs.view(logits.shape[:2])

    def _scores(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        """The logits from which `draft` chooses, B x k x V.

        Where tokens of a block depend on each other, each position is conditioned on the draft tokens before it.
        """
        features, last = self._block(texts, block_size)
        head = self._decoder.transitions
        if head is not None:
            before = torch.cat([last[:, None], self._choose(features, last)[:, :-1]], dim=1)
            features = head(features, self._decoder.embed(before))
        return self._engine.parts.project(features)

    def _begun(self, encoder_out: dict[str, Any]) -> None:
        self._read = [0] * encoder_out["encoder_out"][0].size(1)
        parts = ("encoder_embedding", "encoder_padding_mask") if self._copies_source else ()
        self._encoder_out = {part: encoder_out[part] for part in parts}

    def _keep(self, order: Order) -> None:
        self._encoder_out = {
            part: [value[order.tensor] for value in values] for part, values in self._encoder_out.items()
        }
        self._read = [self._read[row] for row in order.rows]

    def _choose(self, features: Tensor, last: Tensor) -> Tensor:
        """Draft tokens, B x k; `last`: the token before each block, B."""
        logits = self._engine.parts.project(features)
        if self._transitions is None:
            return self._decoder.best_tokens(logits)
        exclude(logits, self._decoder.never_drafted)
        return self._transitions.chain(features, logits, last)

    def _block(self, texts: Sequence[Sequence[int]], block_size: int) -> tuple[Tensor, Tensor]:
        """Decoder output at the masks after each row's prefix, B x k x D, and the token before the masks, B.

        A block has the tokens that each row has committed since the last draft, then masks: k for the row with the most
        tokens, for others more, which are not returned. A causal prefix is cached.
        """
        self.begin()
        decoder, engine = self._decoder, self._engine
        width, last_start = self._width(texts, block_size), max(self._read)
        parts = self._numbers(texts, block_size, width).to(decoder.mask_embedding.device, non_blocking=True)
        last, begin, block, reach, wanted = parts.split_with_sizes([1, 1, width, width, block_size], dim=1)

        inputs = None
        if self._copies_source:
            columns = torch.arange(width, device=parts.device)
            masks = decoder.mask_inputs(begin + columns, self._encoder_out)
            inputs = torch.where((columns >= wanted[:, :1])[..., None], masks, engine.parts.embed(block))
        features = engine.features(block, begin[:, 0], last_start, reach=reach, embeddings=inputs, wanted=wanted)
        self._have_read(texts)
        return features, last[:, 0]

    def _pass(self, shape: Shape, block_size: int) -> Function:
        """The function of a captured draft."""
        sizes = [1, 1, shape.width, shape.width, block_size]
        columns = torch.arange(shape.width, device=self._engine.parts.device)
        drafter = proxy(self)  # as `Captured.weak`

        def draft(numbers: Tensor) -> tuple[Tensor, ...]:
            last, starts, *others = numbers.view(shape.rows, -1).split_with_sizes(sizes, dim=1)
            return numbers[:0], drafter.drafted(shape, last, starts + columns, *others)

        return draft

    def drafted(
        self, shape: Shape, last: Tensor, positions: Tensor, block: Tensor, reach: Tensor, wanted: Tensor
    ) -> Tensor:
        """Draft tokens, R x k, from the numbers of a captured pass: see `_numbers`."""
        assert self.captured is not None
        return self._choose(self.captured.layered(block, positions, shape, reach=reach, wanted=wanted), last[:, 0])

    def _width(self, texts: Sequence[Sequence[int]], block_size: int) -> int:
        """The width of the next block."""
        return block_size + max(len(text) - start for text, start in zip(texts, self._read, strict=True))

    def _numbers(self, texts: Sequence[Sequence[int]], block_size: int, width: int) -> Tensor:
        """For each row: last token, start, `width` tokens, as many positions that they reach, wanted columns."""
        numbers = array("q")
        for text, start in zip(texts, self._read, strict=True):
            fresh, end = len(text) - start, len(text) + block_size - 1  # up to the last mask
            first = start + fresh if self.is_causal else start
            row = [text[-1], start, *text[start:], *[self.mask] * (width - fresh)]
            row += [*range(start, first), *[end] * (width - (first - start)), *range(fresh, fresh + block_size)]
            numbers.extend(row)
        return torch.frombuffer(numbers, dtype=torch.long).view(len(texts), -1)

    def _have_read(self, texts: Sequence[Sequence[int]]) -> None:
        """Record that a block was read after these texts."""
        if self.is_causal:
            self._read = [len(text) for text in texts]


class TransitionTables:
    """A drafter's `TransitionHead` over the best candidates of each position of a block.

    The head changes the score of token b after token a by relu(A embed(a) + B features + bias) . (W^T output(b)): both
    A embed(a) and W^T output(b) are rows of tables, V x H.
    """

    def __init__(self, decoder: NarDrafterDecoder) -> None:
        """From the present weights of a decoder with a transition head, in evaluation mode."""
        head = decoder.transitions
        assert head is not None
        self._backend = choose_backend(head.out.weight, AS_THE_MODEL)
        self._here = self._backend.fused(head.here)
        with torch.no_grad():
            self._before = head.before(decoder.embed(torch.arange(len(decoder.dictionary)).to(head.out.weight.device)))
            self._after = decoder.output_projection.weight @ head.out.weight

    def chain(self, features: Tensor, logits: Tensor, last: Tensor) -> Tensor:
        """Choose the tokens of a draft, B x k.

        Args:
            features: B x k x D, of the block positions, without the head's correction.
            logits: B x k x V, of these features; minus infinity for tokens that are never drafted.
            last: B, the token before each block.
        """
        best = self._backend.choice.best_entries(logits.flatten(0, 1), min(_CANDIDATES, logits.size(-1)))
        scores, candidates = (entries.view(*logits.shape[:2], -1) for entries in best)  # B x k x C
        return self._backend.chain(self._before, self._after, self._here(features), candidates, scores, last)


def _rows_of(encoder_out: dict[str, Any], rows: Tensor | None) -> dict[str, Any]:
    """The encoder output of these rows; None: all rows."""
    if rows is None:
        return encoder_out
    return {
        "encoder_out": [states[:, rows] for states in encoder_out["encoder_out"]],  # S x B x C
        "encoder_padding_mask": [mask[rows] for mask in encoder_out["encoder_padding_mask"]],
        "encoder_embedding": [embedding[rows] for embedding in encoder_out["encoder_embedding"]],
    }
