"""The computations of one model by the kernels in C, on a CPU in single precision."""

from typing import Any

import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import BF16_ON_CPU, Arithmetic
from fairseq_aggdec.engine.native import library
from fairseq_aggdec.engine.native.choice import best_entries, chain, likeliest
from fairseq_aggdec.engine.native.layers import DecoderStack, Embedding, EncoderStack
from fairseq_aggdec.engine.native.library import Kernels
from fairseq_aggdec.engine.native.products import ACTIVATIONS, PackedProduct
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.engine.plain.choice import Choice
from fairseq_aggdec.engine.plain.layers import Positions
from fairseq_aggdec.engine.plain.products import Activation, Product
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.scheduling.costs import KERNELS, KERNELS_16_BITS

NATIVE = Choice(best_entries, likeliest)


class NativeBackend(PlainBackend):
    """The kernels; PyTorch's operations where a layer has an activation without a kernel."""

    has_own_threads = True

    def __init__(self, found: Kernels, arithmetic: Arithmetic, weight: Tensor) -> None:
        super().__init__(arithmetic, weight)
        self.choice = NATIVE
        self._kernels = found
        self._quantised = arithmetic.precision == "int8"

    def product(
        self, weight: Tensor, bias: Tensor | None, activation: Activation | None = None
    ) -> Product:
        if activation not in ACTIVATIONS:
            return super().product(weight, bias, activation)
        return PackedProduct(self._kernels, weight, bias, activation, self._quantised)

    def decoder_layers(self, decoder: TransformerDecoderBase) -> Any:
        layers = DecoderStack(decoder, self._kernels, self._quantised)
        self.pass_cost = KERNELS_16_BITS if layers.narrow else KERNELS
        return layers

    def encoder_layers(self, encoder: TransformerEncoderBase) -> Any:
        return EncoderStack(encoder, self._kernels, self._quantised)

    def embedding(
        self,
        decoder: TransformerDecoderBase,
        positions: Positions | None,
        extra_embeddings: Tensor | None,
    ) -> Embedding:
        """See `PlainBackend.embedding`."""
        return Embedding(
            self._kernels,
            decoder.embed_tokens.weight,
            decoder.embed_scale,
            positions,
            extra_embeddings,
        )

    def chain(
        self,
        before: Tensor,
        after: Tensor,
        here: Tensor,
        candidates: Tensor,
        scores: Tensor,
        last: Tensor,
    ) -> Tensor:
        return chain(self._kernels, before, after, here, candidates, scores, last)


def native_backend(
    weight: Tensor, arithmetic: Arithmetic, activation: Any
) -> NativeBackend | None:
    """The kernels for a model with such weights on a CPU and such an activation; None where PyTorch computes it.

    Raises `AggdecError` where there are no kernels, and --int8 or --bit-exact needs them, and for --bf16.
    """
    if arithmetic.precision == "bf16":
        raise AggdecError(BF16_ON_CPU)
    found = library.kernels()
    is_int8 = arithmetic.precision == "int8"
    if weight.dtype != torch.float32:
        reason = f"do not compute in {weight.dtype}: take a model in single precision, or leave the option out"
    elif activation not in ACTIVATIONS:
        reason = f"do not have the activation {getattr(activation, '__name__', activation)}: leave the option out"
    elif found is None:
        reason = (
            f"are missing here (vector instructions: {torch.backends.cpu.get_cpu_capability()}). They need AVX2 or "
            "AVX-512, a C compiler when the plugin is installed, and not AGGDEC_KERNELS=0"
        )
    elif is_int8 and not found.quantises:
        reason = "need the VNNI instructions for 8-bit integers, which this processor does not have"
    else:
        return NativeBackend(found, arithmetic, weight)
    refuse_options(arithmetic, reason)
    return None


def refuse_options(arithmetic: Arithmetic, reason: str) -> None:
    """Raise `AggdecError` for --int8 and --bit-exact, which need the kernels; `reason`: why there are none."""
    if not arithmetic.is_judged and (
        arithmetic.precision == "int8" or arithmetic.bit_exact
    ):
        raise AggdecError(
            f"{arithmetic.options()} needs this plugin's kernels, which {reason}"
        )
