"""The forward pass of a stock fairseq Transformer encoder, with the same weights and for inference alone.

fairseq's encoder is built for training: for one sentence it takes longer between the matrix products than in them.
"""

import torch.nn.functional as F
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.backend import Backend
from fairseq_aggdec.engine.choose_backend import choose_backend
from fairseq_aggdec.engine.plain.layers import Norm, Positions
from fairseq_aggdec.engine.supported_models import unsupported_encoder
from fairseq_aggdec.errors import AggdecError

_KEY_MULTIPLE = 16  # of the sources' width, so that few shapes occur


class BlockEncoder:
    """Computes the output of a fairseq encoder in evaluation mode."""

    def __init__(
        self,
        encoder: TransformerEncoderBase,
        arithmetic: Arithmetic = AS_THE_MODEL,
        clamps: bool = False,
        backend: Backend | None = None,
    ) -> None:
        """From the present weights of fairseq's encoder. `backend` and errors as of `BlockDecoder`.

        `clamps`: give tokens after the last learned position that position, as a drafter may.
        """
        reason = unsupported_encoder(encoder)
        if reason is not None:
            raise ValueError(f"the block engine does not support {reason}")
        self._encoder, self._clamps = encoder, clamps
        embedding = encoder.embed_tokens.weight
        backend = backend or choose_backend(embedding, arithmetic, encoder.layers[0].activation_fn)
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

    def __call__(self, tokens: Tensor) -> dict[str, list[Tensor]]:
        """Encode a batch, B x S, padded on either side.

        Returns fairseq's encoder output: `encoder_out` S x B x C, undefined at padding, `encoder_padding_mask` B x S,
        `encoder_embedding` B x S x C; other entries are empty. With `same_bits` S is larger, all padding on the right.

        Raises `AggdecError` where a sentence is longer than the encoder's learned positions.
        """
        if self._aligns:
            tokens = _aligned(tokens, self.pad)
        self._check_length(tokens)
        x, embedding, hidden = self._encoded(tokens)
        return {
            "encoder_out": [x.transpose(0, 1)],
            "encoder_padding_mask": [hidden],
            "encoder_embedding": [embedding],
            "encoder_states": [],
            "src_tokens": [],
            "src_lengths": [],
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

    def _encoded(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The encoder's states and the embeddings of its tokens, B x S x C each, and the padding, B x S."""
        hidden = tokens.eq(self.pad)
        # a mask without padding is dropped on a CPU; on a GPU to read it would cost a synchronisation
        padding = hidden if self._waits or bool(hidden.any()) else None
        return *self._states(tokens, padding), hidden

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
