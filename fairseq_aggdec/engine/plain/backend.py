"""The computations of one model by PyTorch's operations."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models.transformer import (
    TransformerDecoderBase,
    TransformerEncoderBase,
)
from torch import Tensor, nn

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.plain.choice import Choice
from fairseq_aggdec.engine.plain.layers import (
    DecoderLayers,
    EncoderLayers,
    Positions,
)
from fairseq_aggdec.engine.plain.products import (
    Activation,
    Linear,
    PrepackedLinear,
    Product,
    can_prepack,
)
from fairseq_aggdec.engine.weights import fused_weights
from fairseq_aggdec.scheduling.costs import PYTORCH, Processor


class PlainBackend:
    """Answers about a device and an arithmetic, and functions that build the parts of one model's passes.

    By PyTorch's operations, on any device: the reference. Others inherit from it, and replace what they have faster.
    """

    has_own_threads = False
    """whether passes leave PyTorch's threads idle"""

    def __init__(
        self,
        arithmetic: Arithmetic,
        weight: Tensor,
        sync_is_costly: bool = False,
    ) -> None:
        """`weight`: of the model, for its type; `sync_is_costly`: whether it is on a GPU."""
        self.arithmetic = arithmetic
        self.sync_is_costly = sync_is_costly
        """whether the host waits for queued operations when it reads a value, as of a GPU"""
        self.pass_cost: Processor = PYTORCH
        """overheads of a pass of these layers on a CPU"""
        self.choice = Choice(sync_is_costly=sync_is_costly)
        """finds the highest scores"""
        self._may_prepack = weight.dtype == torch.float32 and not sync_is_costly

    def product(
        self,
        weight: Tensor,
        bias: Tensor | None,
        activation: Activation | None = None,
    ) -> Product:
        """A linear layer with a weight, O x I, and a bias, O. A model may have any activation, and biased logits."""
        if self.arithmetic.precision == "bf16":
            return Linear(weight.bfloat16(), bias, activation)
        if self._may_prepack and can_prepack():
            return PrepackedLinear(weight, bias, activation)
        return Linear(weight, bias, activation)

    def fused(
        self,
        *projections: nn.Linear,
        activation: Activation | None = None,
        order: Tensor | None = None,
    ) -> Product:
        """One product for several projections of the same input, see `fused_weights`."""
        return self.product(*fused_weights(*projections, order=order), activation)

    def decoder_layers(self, decoder: TransformerDecoderBase) -> Any:
        """A decoder's layers, with the methods of `DecoderLayers`."""
        return DecoderLayers(decoder, self.fused)

    def encoder_layers(
        self, encoder: TransformerEncoderBase
    ) -> Callable[[Tensor, Tensor | None], Tensor]:
        """An encoder's layers, called as `EncoderLayers`."""
        return EncoderLayers(encoder, self.fused)

    def embedding(
        self,
        decoder: TransformerDecoderBase,
        positions: Positions | None,
        extra_embeddings: Tensor | None,
    ) -> Callable[[Tensor, Tensor | range, int], Tensor] | None:
        """The input of a decoder's first layer in one operation, as `native.layers.Embedding`; None: in several.

        `positions`: rows of any table, learned or computed; the decoder's own input table may differ from its logits'.
        """
        return None

    def decoder_kernels(
        self,
        decoder: TransformerDecoderBase,
        positions: Positions | None,
        extra_embeddings: Tensor | None,
    ) -> Any:
        """The passes of a decoder in a few kernels, `cuda.backend.DecoderKernels`; None where there are none."""
        return None

    def drop_kernels(self) -> bool:
        """Compute without kernels from now on, since they fail; False where there are none."""
        return False

    def chain(
        self,
        before: Tensor,
        after: Tensor,
        here: Tensor,
        candidates: Tensor,
        scores: Tensor,
        last: Tensor,
    ) -> Tensor:
        """The best candidate of each position, given the token chosen before it (`draft_decoder.ChooseTokens`).

        Args:
            before: V x H, the table of A embed(a).
            after: V x H, the table of W^T output(b).
            here: B x k x H, B features + bias of each position.
            candidates: B x k x C tokens.
            scores: B x k x C, the scores of the candidates without transitions.
            last: B, the token before each block.

        Returns:
            B x k tokens.
        """
        first = last[:, None, None].expand(-1, 1, candidates.size(-1))
        preceding = torch.cat([first, candidates[:, :-1]], dim=1)
        # B x k x C x H
        hidden = F.embedding(preceding, before).add_(here[:, :, None]).relu_()
        # B x k x C x C, the later token last
        transitions = hidden @ F.embedding(candidates, after).transpose(-1, -2)
        # B x k x C: the best after each candidate
        best_after = (scores[..., None, :] + transitions).argmax(dim=-1)
        # the token before the first is at every place
        chosen = best_after.new_zeros(best_after.size(0), 1)
        picks = []
        for position in best_after.unbind(dim=1):
            chosen = position.gather(1, chosen)
            picks.append(chosen)
        return candidates.gather(2, torch.stack(picks, dim=1)).squeeze(2)
