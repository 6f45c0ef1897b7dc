"""The computations of one model by Triton kernels, for few tokens in half precision."""

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor
from triton import knobs

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.cuda.choice import best_entries, chosen, embedded, projected
from fairseq_aggdec.engine.cuda.launching import LEAST_CAPABILITY, capability
from fairseq_aggdec.engine.cuda.layers import TritonDecoderLayers, TritonEncoderLayers
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.engine.plain.layers import Positions
from fairseq_aggdec.engine.plain.products import Activation, Product
from fairseq_aggdec.models.transformer_parts import layers_of

logger = logging.getLogger(__name__)

FEW_TOKENS = 48
"""of a pass; with more, PyTorch's products are faster"""
# elements inside a feed-forward part; above, PyTorch's products are faster for few tokens, too
_MOST_INNER = 4096
# of a product whose weights a program reads at once; more do not fit into shared memory
_MOST_INPUTS = 1024


class CudaBackend(PlainBackend):
    """Kernels for few tokens, PyTorch's operations for more; under --bit-exact kernels for any count.

    A token has the same bits in every pass of the kernels.
    """

    def __init__(
        self, arithmetic: Arithmetic, weight: Tensor, sync_is_costly: bool
    ) -> None:
        super().__init__(arithmetic, weight, sync_is_costly)
        self._always = arithmetic.bit_exact
        self._most = FEW_TOKENS

    def computes(self, tokens: int) -> bool:
        """Whether kernels compute a pass of this many tokens."""
        return self._always or tokens <= self._most

    def drop_kernels(self) -> bool:
        if self._always or self._most == 0:
            return False
        self._most = 0
        # the driver may have failed: the next model finds out
        why_no_launch.cache_clear()
        return True

    def product(
        self, weight: Tensor, bias: Tensor | None, activation: Activation | None = None
    ) -> Product:
        # PyTorch's are faster with any count of rows; longer ones belong to layers, which have other kernels
        if not self._always or weight.size(1) > _MOST_INPUTS:
            return super().product(weight, bias, activation)
        weight = weight.detach().contiguous()
        bias = None if bias is None else bias.detach()

        def product(x: Tensor) -> Tensor:
            y = projected(x.reshape(-1, x.size(-1)).contiguous(), weight, bias)
            y = y.view(*x.shape[:-1], -1)
            return y if activation is None else activation(y)

        return product

    def decoder_kernels(
        self,
        decoder: TransformerDecoderBase,
        positions: Positions | None,
        extra_embeddings: Tensor | None,
    ) -> "DecoderKernels":
        """See `DecoderKernels`."""
        self._check_inner(decoder)
        attention = decoder.layers[0].encoder_attn
        widest = max(attention.q_proj.in_features, attention.k_proj.in_features)
        if self._always and widest > _MOST_INPUTS:
            raise ValueError(f"states of {widest} elements, above {_MOST_INPUTS}")
        return DecoderKernels(self.computes, decoder, positions, extra_embeddings)

    def encoder_layers(
        self, encoder: TransformerEncoderBase
    ) -> Callable[[Tensor, Tensor | None], Tensor]:
        """See `PlainBackend.encoder_layers`. Raises `ValueError` if the kernels do not support the encoder."""
        self._check_inner(encoder)
        many = super().encoder_layers(encoder)
        few = TritonEncoderLayers(encoder)

        def layers(x: Tensor, hidden: Tensor | None) -> Tensor:
            tokens = x.size(0) * x.size(1)
            return few(x, hidden) if self.computes(tokens) else many(x, hidden)

        return layers

    def _check_inner(
        self, model: TransformerEncoderBase | TransformerDecoderBase
    ) -> None:
        inner = layers_of(model)[0].fc1.out_features
        if inner > _MOST_INNER and not self._always:
            raise ValueError(
                f"layers of {inner} elements inside: above {_MOST_INNER} PyTorch's products are faster"
            )


class DecoderKernels(TritonDecoderLayers):
    """A decoder's embedding, layers and choice by the kernels."""

    chosen = staticmethod(chosen)
    best_entries = staticmethod(best_entries)

    def __init__(
        self,
        computes: Callable[[int], bool],
        decoder: TransformerDecoderBase,
        positions: Positions | None,
        extra_embeddings: Tensor | None,
    ) -> None:
        """Copy the weights of a decoder; raises `ValueError` where the kernels do not support it.

        `computes`: whether kernels compute the layers of a pass of so many tokens.
        `extra_embeddings`: see `Parts`.
        """
        super().__init__(decoder)
        self.computes = computes
        self._words = decoder.embed_tokens.weight.detach()
        self._embed_scale = float(decoder.embed_scale)
        self._positions = positions
        self._extra_embeddings = extra_embeddings

    def embedded(self, tokens: Tensor, positions: Tensor, end: int) -> Tensor:
        """The input of the first layer, B x W -> B x W x D, for tokens at positions below `end`."""
        x = embedded(
            # a column of a table is flattened without a copy
            tokens.flatten().contiguous(),
            positions.flatten().contiguous(),
            self._words,
            self._embed_scale,
            None if self._positions is None else self._positions.reaching(end),
            self._extra_embeddings,
        )
        return x.view(*tokens.shape, -1)


@cache
def why_no_launch(device: torch.device) -> str | None:
    """Why a GPU runs no kernel, or None; a small one is compiled and launched."""
    found = capability(device)
    if found < LEAST_CAPABILITY:
        return f"this GPU has capability {'.'.join(map(str, found))}, and they need 8.0"
    if not any(Path(knobs.cache.dir).glob("*/projections.*")):
        logger.warning(
            "Triton compiles kernels for this GPU, once: the first batches take up to a minute longer"
        )
    try:
        with torch.cuda.device(device):
            zeros = torch.zeros(1, dtype=torch.long, device=device)
            embedded(
                zeros,
                zeros,
                torch.zeros(2, 16, dtype=torch.float16, device=device),
                1.0,
                None,
                None,
            )
            torch.cuda.synchronize()
    except Exception as error:
        # without a C compiler, Python's headers or a new driver Triton raises many things
        return f"Triton cannot run a kernel ({type(error).__name__}: {error})"
    return None
