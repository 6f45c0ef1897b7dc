"""The forward pass of a block drafter's decoder; a causal prefix is read once.

The layers are stock, so the verifier's engine runs them. A block has the tokens that a row has committed since the last
draft, and k masks, which attend to each other. The next block overwrites the cached keys and values of the masks.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, RowSelection
from fairseq_aggdec.decoding.top_k import exclude
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import ONE_BY_ONE, Way, choose_backend
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.choice import choose_block
from fairseq_aggdec.engine.runner import DraftBlock
from fairseq_aggdec.models.nar_drafter import NarDrafterDecoder

Encode = Callable[[Tensor | None], dict[str, Any]]

# per position; the cost grows with the square, and 64 changes hardly any draft
_CANDIDATES = 16


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
        self._encode = encode
        self._rows = None

    def keep(self, order: RowSelection) -> None:
        if self._encode is not None:
            self._rows = (
                order.tensor if self._rows is None else self._rows[order.tensor]
            )
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

    def _keep(self, order: RowSelection) -> None:
        """Keep only these rows; the engine has kept them."""
        raise NotImplementedError


class DraftDecoder(LateStart):
    """A `drafters.block.BlockModel` over a `NarDrafterDecoder`.

    A bidirectional prefix attends to the block, so it is read again for every draft. On a GPU a draft stays where the
    verifier reads it, and the next one overwrites it.
    """

    _engine: Decoder

    def __init__(
        self,
        decoder: NarDrafterDecoder,
        arithmetic: Arithmetic = AS_THE_MODEL,
        way: Way = ONE_BY_ONE,
    ) -> None:
        """The decoder must be in evaluation mode. Raises as `Decoder`."""
        self.max_positions = decoder.max_positions()
        self._decoder = decoder
        self._copies_source = decoder.copy_query is not None
        self.is_causal = decoder.is_causal
        """whether a prefix is cached, since it does not attend to the block"""
        # padding stands for masks whose inputs the caller computes
        self.mask = (
            decoder.padding_idx
            if self._copies_source
            else decoder.embed_tokens.num_embeddings
        )
        """the id that stands for a mask in a block"""
        super().__init__(
            Decoder(
                decoder,
                arithmetic,
                way,
                None if self._copies_source else decoder.mask_embedding[None],
            )
        )
        self.runner = self._engine.eager if self._copies_source else self._engine.runner
        """runs the passes"""
        self.choose_tokens = ChooseTokens(decoder, self._engine.parts)
        """chooses draft tokens"""
        self.sync_is_costly = self._engine.backend.sync_is_costly
        self._encoder_out: dict[str, list[Tensor]] = {}
        self._read: list[int] = []  # cached tokens of each row

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        drafts = self.runner.draft(self._block(texts, block_size), self.choose_tokens)
        self._have_read(texts)
        return drafts

    def choose(
        self,
        texts: Sequence[Sequence[int]],
        block_size: int,
        rules: SearchRules,
        temperature: float,
    ) -> tuple[Tensor, Tensor]:
        logits = self._scores(texts, block_size)

        # as if a verifier had read the best tokens
        starts = [len(text) - 1 for text in texts]
        lasts = [text[-1] for text in texts]
        block = Block.of_draft(
            lasts, starts, logits.argmax(dim=-1)[:, :-1], None, logits.device
        )
        sequence = block.sequence(texts, rules.pad) if rules.read_output else None
        if temperature != 1.0:
            logits = logits / temperature
        chosen = choose_block(
            [logits.flatten(0, 1)],
            self._engine.backend.choice,
            block,
            rules,
            0,
            sequence,
        )
        return chosen.tokens.view(logits.shape[:2]), chosen.log_probs.view(
            logits.shape[:2]
        )

    def _scores(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        """The logits from which `draft` chooses, B x k x V.

        Where tokens of a block depend on each other, each position is conditioned on the draft tokens before it.
        """
        features, last = self._engine.eager.read_masks(self._block(texts, block_size))
        self._have_read(texts)
        head = self._decoder.transitions
        if head is not None:
            before = torch.cat(
                [last[:, None], self.choose_tokens(features, last)[:, :-1]], dim=1
            )
            features = head(features, self._decoder.embed(before))
        return self._engine.parts.project(features)

    def _begun(self, encoder_out: dict[str, Any]) -> None:
        self._read = [0] * encoder_out["encoder_out"][0].size(1)
        parts = (
            ("encoder_embedding", "encoder_padding_mask") if self._copies_source else ()
        )
        self._encoder_out = {part: encoder_out[part] for part in parts}

    def _keep(self, order: RowSelection) -> None:
        self._encoder_out = {
            part: [value[order.tensor] for value in values]
            for part, values in self._encoder_out.items()
        }
        self._read = [self._read[row] for row in order.rows]

    def _block(self, texts: Sequence[Sequence[int]], block_size: int) -> DraftBlock:
        """The tokens that each row has committed since the last draft, then masks.

        There are k masks for the row with the most tokens, for others more, of which the first k count.
        """
        self.begin()
        width = block_size + max(
            len(text) - start for text, start in zip(texts, self._read, strict=True)
        )
        table = array("q")
        for text, start in zip(texts, self._read, strict=True):
            fresh = len(text) - start
            # the position of the last mask that counts
            end = len(text) + block_size - 1
            alone = fresh if self.is_causal else 0  # tokens that attend to no mask
            table.extend([text[-1], start])
            table.extend([*text[start:], *[self.mask] * (width - fresh)])
            table.extend([*range(start, start + alone), *[end] * (width - alone)])
            table.extend(range(fresh, fresh + block_size))
        rows = torch.frombuffer(table, dtype=torch.long).view(len(texts), -1)
        return DraftBlock(
            rows,
            width,
            block_size,
            max(self._read),
            self._embed if self._copies_source else None,
        )

    def _embed(self, tokens: Tensor, starts: Tensor, wanted: Tensor) -> Tensor:
        """Embeddings of a block whose masks are copies of the source, see `DraftBlock`."""
        columns = torch.arange(tokens.size(1), device=tokens.device)
        masks = self._decoder.mask_inputs(starts + columns, self._encoder_out)
        return torch.where(
            (columns >= wanted[:, :1])[..., None],
            masks,
            self._engine.parts.embed(tokens),
        )

    def _have_read(self, texts: Sequence[Sequence[int]]) -> None:
        """Record that a block was read after these texts."""
        if self.is_causal:
            self._read = [len(text) for text in texts]


class ChooseTokens:
    """The draft tokens of features: the best at each position, or the best chain under a `TransitionHead`.

    The head changes the score of token b after token a by relu(A embed(a) + B features + bias) . (W^T output(b)): both
    A embed(a) and W^T output(b) are rows of tables, V x H. Of each position the best candidates take part.
    """

    def __init__(self, decoder: NarDrafterDecoder, parts: Parts) -> None:
        """From the present weights of a decoder in evaluation mode."""
        self._decoder = decoder
        self._parts = parts
        head = decoder.transitions
        self._has_transitions = head is not None
        if head is not None:
            weight = head.out.weight
            self._backend = choose_backend(weight, AS_THE_MODEL)
            self._here = self._backend.fused(head.here)
            with torch.no_grad():
                words = torch.arange(len(decoder.dictionary), device=weight.device)
                self._before = head.before(decoder.embed(words))
                self._after = decoder.output_projection.weight @ weight

    def __call__(self, features: Tensor, last: Tensor) -> Tensor:
        """Draft tokens of block positions, B x k x D -> B x k; `last`: the token before each block, B."""
        logits = self._parts.project(features)
        if not self._has_transitions:
            return self._decoder.best_tokens(logits)
        exclude(logits, self._decoder.never_drafted)
        best = self._backend.choice.best_entries(
            logits.flatten(0, 1), min(_CANDIDATES, logits.size(-1))
        )
        # B x k x C
        scores, candidates = (entries.view(*logits.shape[:2], -1) for entries in best)
        return self._backend.chain(
            self._before, self._after, self._here(features), candidates, scores, last
        )


def _rows_of(encoder_out: dict[str, Any], rows: Tensor | None) -> dict[str, Any]:
    """The encoder output of these rows; None: all rows."""
    if rows is None:
        return encoder_out
    by_row = {
        name: [values[rows] for values in encoder_out[name]]
        for name in ("encoder_padding_mask", "encoder_embedding")
    }
    # S x B x C
    states = [states[:, rows] for states in encoder_out["encoder_out"]]
    return {"encoder_out": states, **by_row}
