"""The forward pass of a stock fairseq Transformer encoder, with the same weights and for inference alone.

fairseq's encoder is built for training: for one sentence it takes longer between the matrix products than in them.
"""

from weakref import proxy

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import ONE_BY_ONE, Way, choose_backend
from fairseq_aggdec.engine.graphs.buffers import MOST_TOKENS, STATIC, rows_bucket, source_bucket
from fairseq_aggdec.engine.graphs.graphs import Function, Graphs
from fairseq_aggdec.engine.plain.layers import Norm, Positions
from fairseq_aggdec.engine.supported_models import unsupported_encoder
from fairseq_aggdec.errors import AggdecError

_KEY_MULTIPLE = 16  # of the sources' width, so that few shapes occur


class Encoder:
    """Computes the output of a fairseq encoder in evaluation mode.

    For captured passes batches are filled up to a few sizes with padding.
    """

    def __init__(
        self,
        encoder: TransformerEncoderBase,
        arithmetic: Arithmetic = AS_THE_MODEL,
        way: Way = ONE_BY_ONE,
        clamps: bool = False,
    ) -> None:
        """From the present weights of fairseq's encoder. Raises as `Decoder`.

        `clamps`: give tokens after the last learned position that position, as a drafter may.
        """
        reason = unsupported_encoder(encoder)
        if reason is not None:
            raise ValueError(f"the block engine does not support {reason}")
        self._encoder, self._clamps = encoder, clamps
        embedding = encoder.embed_tokens.weight
        backend = choose_backend(embedding, arithmetic, encoder.layers[0].activation_fn, way)
        self._layers = backend.encoder_layers(encoder)
        self._waits = backend.reads_wait
        self.backend = backend
        """the backend that computes the layers"""
        self._aligns = arithmetic.same_bits
        positions = encoder.embed_positions
        self._positions = None if positions is None else Positions(positions, embedding)
        self._embedding_norm = None if encoder.layernorm_embedding is None else Norm(encoder.layernorm_embedding)
        self.pad: int = encoder.padding_idx
        self.symbols, self.device, self.dtype = embedding.size(0), embedding.device, embedding.dtype
        self._graphs = Graphs.on(self.device, backend.drop_kernels) if way.captures else None

    def __call__(self, tokens: Tensor) -> dict[str, list[Tensor]]:
        """Encode a batch, B x S, padded on either side.

        Returns fairseq's encoder output: `encoder_out` S x B x C, undefined at padding, `encoder_padding_mask` B x S,
        `encoder_embedding` B x S x C; other entries are empty, and
        of captured passes `STATIC`, where these are views. With `same_bits` S is larger, all padding on the right.

        Raises `AggdecError` where a sentence is longer than the encoder's learned positions.
        """
        if self._aligns:
            tokens = _aligned(tokens, self.pad)
        self._check_length(tokens)
        rows, source = rows_bucket(tokens.size(0)), source_bucket(tokens.size(1))
        if self._graphs is not None and (rows * source <= MOST_TOKENS or self._aligns):
            static = self._captured(tokens, rows, source)
            x, embedding, hidden = (part[: tokens.size(0), : tokens.size(1)] for part in static)
        else:
            static, hidden = [], tokens.eq(self.pad)
            # a mask without padding is dropped on a CPU; on a GPU to read it would cost a synchronisation
            x, embedding = self._states(tokens, hidden if self._waits or bool(hidden.any()) else None)
        return {
            "encoder_out": [x.transpose(0, 1)],
            "encoder_padding_mask": [hidden],
            "encoder_embedding": [embedding],
            "encoder_states": [],
            "src_tokens": [],
            "src_lengths": [],
            STATIC: static,
        }

    def _check_length(self, tokens: Tensor) -> None:
        """Raise `AggdecError` for a sentence that is longer than the encoder's learned positions."""
        if self._positions is None or self._clamps:
            return
        places = self._positions.reaching(tokens.size(1)).size(0)
        if places < tokens.size(1) and (longest := int(tokens.ne(self.pad).sum(dim=1).max())) > places:
            raise AggdecError(
                f"a source has {longest} symbols, end of sentence included, and the model's encoder only {places} "
                "positions: leave it out or cut it"
            )

    def _captured(self, tokens: Tensor, rows: int, source: int) -> list[Tensor]:
        """States, embeddings and padding of a graph, R x S x C and R x S; the next batch overwrites them."""
        assert self._graphs is not None
        # sinusoidal positions that grow move
        table = None if self._positions is None else self._positions.reaching(source).data_ptr()
        graph = self._graphs.get(("encoder", rows, source, table), 0, lambda: self._pass(rows, source))
        graph.inputs[0].fill_(self.pad)[: tokens.size(0), : tokens.size(1)] = tokens
        self._graphs.run(graph)
        return graph.results

    def _pass(self, rows: int, source: int) -> tuple[Function, list[Tensor]]:
        """The function of a captured pass, and its input, the tokens."""
        tokens = torch.full((rows, source), self.pad, dtype=torch.long, device=self.device)
        encoder = proxy(self)  # as `Captured.weak`

        def encode(numbers: Tensor) -> tuple[Tensor, ...]:
            hidden = tokens.eq(encoder.pad)
            states, embedding = encoder._states(tokens, hidden)
            # hidden states have weight zero, and zero times NaN is NaN; a row beyond the batch attends to its zeros
            states = states.masked_fill(hidden[..., None], 0.0)
            return numbers, states, embedding, hidden & ~hidden.all(dim=1, keepdim=True)

        return encode, [tokens]

    def _states(self, tokens: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
        """States and embeddings, B x S x C each; `hidden`: the padding, B x S; None without padding."""
        encoder, length = self._encoder, tokens.size(1)
        x = embedding = encoder.embed_scale * F.embedding(tokens, encoder.embed_tokens.weight)
        if self._positions is not None:
            if hidden is None:
                x = x + self._positions.span(0, length)
            else:
                x = x + self._positions.look_up((~hidden).cumsum(dim=1).sub_(1).clamp_(min=0), length)
        if self._embedding_norm is not None:
            x = self._embedding_norm(x)
        if hidden is not None:
            x = x.masked_fill(hidden[..., None], 0.0)
        return self._layers(x, hidden), embedding


def _aligned(tokens: Tensor, pad: int) -> Tensor:
    """Move padding after the sentences, B x S -> B x S': hidden keys before a sentence would change its bits."""
    hidden = tokens.eq(pad)
    if bool(hidden.any()):
        tokens = tokens.gather(1, hidden.byte().argsort(dim=1, stable=True))
    return F.pad(tokens, (0, -tokens.size(1) % _KEY_MULTIPLE), value=pad)
