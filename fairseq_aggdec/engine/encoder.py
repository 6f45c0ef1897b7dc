"""The forward pass of a stock fairseq Transformer encoder, with the same weights and for inference alone.

fairseq's encoder is built for training: for one sentence it takes longer between the matrix products than in them.
"""

import torch.nn.functional as F
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import ONE_BY_ONE, Way, choose_backend
from fairseq_aggdec.engine.graphs.buffers import STATIC
from fairseq_aggdec.engine.graphs.encoder import Encoded, EncoderGraphs
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.engine.plain.layers import Norm, Positions
from fairseq_aggdec.errors import AggdecError

_KEY_MULTIPLE = 16  # of the sources' width, so that few shapes occur


class EagerEncoder:
    """Encodes a batch, one operation after the other."""

    def __init__(self, encoder: TransformerEncoderBase, backend: PlainBackend) -> None:
        """From the present weights of fairseq's encoder."""
        self.backend = backend
        self._scale = encoder.embed_scale
        self._words = encoder.embed_tokens.weight
        self._layers = backend.encoder_layers(encoder)
        self.positions = (
            None
            if encoder.embed_positions is None
            else Positions(encoder.embed_positions, self._words)
        )
        self._norm = Norm(encoder.layernorm_embedding)
        self.pad: int = encoder.padding_idx
        self.device = self._words.device

    def __call__(self, tokens: Tensor) -> Encoded:
        hidden = tokens.eq(self.pad)
        # a mask without padding is dropped on a CPU; on a GPU to read it would cost a synchronisation
        is_padded = self.backend.sync_is_costly or bool(hidden.any())
        return Encoded(*self.states(tokens, hidden if is_padded else None), hidden, [])

    def states(self, tokens: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
        """States and embeddings, B x S x C each; `hidden`: the padding, B x S; None without padding."""
        length = tokens.size(1)
        x = embedding = self._scale * F.embedding(tokens, self._words)
        if self.positions is not None:
            if hidden is None:
                x = x + self.positions.span(0, length)
            else:
                x = x + self.positions.look_up(
                    (~hidden).cumsum(dim=1).sub_(1).clamp_(min=0), length
                )
        x = self._norm(x)
        if hidden is not None:
            x = x.masked_fill(hidden[..., None], 0.0)
        return self._layers(x, hidden), embedding


class Encoder:
    """Computes the output of a fairseq encoder in evaluation mode."""

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
        self.backend = choose_backend(
            encoder.embed_tokens.weight,
            arithmetic,
            encoder.layers[0].activation_fn,
            way,
        )
        """the backend that computes the layers"""
        self._eager = EagerEncoder(encoder, self.backend)
        self._encode = EncoderGraphs(self._eager) if way.captures else self._eager
        self._aligns = arithmetic.same_bits
        self._clamps = clamps

    def __call__(self, tokens: Tensor) -> dict[str, list[Tensor]]:
        """Encode a batch, B x S, padded on either side.

        Returns fairseq's encoder output: `encoder_out` S x B x C, undefined at padding, `encoder_padding_mask` B x S,
        `encoder_embedding` B x S x C, and `STATIC`; other entries are empty. With `same_bits` S is larger, all padding
        on the right.

        Raises `AggdecError` where a sentence is longer than the encoder's learned positions.
        """
        if self._aligns:
            tokens = _aligned(tokens, self._eager.pad)
        self._check_length(tokens)
        found = self._encode(tokens)
        return {
            "encoder_out": [found.states.transpose(0, 1)],
            "encoder_padding_mask": [found.hidden],
            "encoder_embedding": [found.embedding],
            "encoder_states": [],
            "src_tokens": [],
            "src_lengths": [],
            STATIC: found.static,
        }

    def _check_length(self, tokens: Tensor) -> None:
        """Raise `AggdecError` for a sentence that is longer than the encoder's learned positions."""
        positions = self._eager.positions
        if positions is None or self._clamps:
            return
        places = positions.reaching(tokens.size(1)).size(0)
        if (
            places < tokens.size(1)
            and (longest := int(tokens.ne(self._eager.pad).sum(dim=1).max())) > places
        ):
            raise AggdecError(
                f"a source has {longest} symbols, end of sentence included, and the model's encoder only {places} "
                "positions: leave it out or cut it"
            )


def _aligned(tokens: Tensor, pad: int) -> Tensor:
    """Move padding after the sentences, B x S -> B x S': hidden keys before a sentence would change its bits."""
    hidden = tokens.eq(pad)
    if bool(hidden.any()):
        tokens = tokens.gather(1, hidden.byte().argsort(dim=1, stable=True))
    return F.pad(tokens, (0, -tokens.size(1) % _KEY_MULTIPLE), value=pad)
