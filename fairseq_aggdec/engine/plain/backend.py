"""The computations of one model by PyTorch's operations."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor, nn

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.backend import Backend
from fairseq_aggdec.engine.plain.choice import Choice
from fairseq_aggdec.engine.plain.layers import (
    Attend,
    DecoderLayers,
    EncoderLayers,
    Positions,
    attend,
    attend_in_products,
)
from fairseq_aggdec.engine.plain.products import Activation, InBfloat16, Linear, Product
from fairseq_aggdec.engine.weights import fused_weights
from fairseq_aggdec.scheduling.costs import PYTORCH


class PlainBackend(Backend):
    """PyTorch's operations, on any device: the reference. Other backends replace what they have faster."""

    has_own_threads = False

    def __init__(self, arithmetic: Arithmetic, weight: Tensor, reads_wait: bool = False) -> None:
        """`weight`: of the model, for its device and type; `reads_wait`: on a GPU."""
        self.arithmetic = arithmetic
        self.reads_wait = self.padding_is_free = reads_wait
        self.pass_cost = None if reads_wait else PYTORCH
        self.choice = Choice(reads_wait=reads_wait)
        self._attend: Attend = attend_in_products if not reads_wait and weight.dtype == torch.float32 else attend

    def product(self, weight: Tensor, bias: Tensor | None, activation: Activation | None = None) -> Product:
        if self.arithmetic.precision == "bf16":
            return InBfloat16(weight, bias, activation)
        return Linear(weight, bias, activation, prepacks=not self.reads_wait)

    def fused(
        self, *projections: nn.Linear, activation: Activation | None = None, order: Tensor | None = None
    ) -> Product:
        return self.product(*fused_weights(*projections, order=order), activation)

    def decoder_layers(self, decoder: TransformerDecoderBase) -> Any:
        return DecoderLayers(decoder, self.fused, self._attend)

    def encoder_layers(self, encoder: TransformerEncoderBase) -> Callable[[Tensor, Tensor | None], Tensor]:
        return EncoderLayers(encoder, self.fused)

    def embedding(
        self, decoder: TransformerDecoderBase, positions: Positions | None, extra_embeddings: Tensor | None
    ) -> Callable[[Tensor, Tensor | range, int], Tensor] | None:
        return None

    def decoder_kernels(
        self, decoder: TransformerDecoderBase, positions: Positions | None, extra_embeddings: Tensor | None
    ) -> Any:
        return None

    def drop_kernels(self) -> bool:
        return False

    def chain(
        self, before: Tensor, after: Tensor, here: Tensor, candidates: Tensor, scores: Tensor, last: Tensor
    ) -> Tensor:
        first = last[:, None, None].expand(-1, 1, candidates.size(-1))
        preceding = torch.cat([first, candidates[:, :-1]], dim=1)
        hidden = F.embedding(preceding, before).add_(here[:, :, None]).relu_()  # B x k x C x H
        transitions = hidden @ F.embedding(candidates, after).transpose(-1, -2)  # B x k x C x C, the later token last
        best_after = (scores[..., None, :] + transitions).argmax(dim=-1)  # B x k x C: the best after each candidate
        chosen, picks = best_after.new_zeros(best_after.size(0), 1), []  # the token before the first is at every place
        for position in best_after.unbind(dim=1):
            chosen = position.gather(1, chosen)
            picks.append(chosen)
        return candidates.gather(2, torch.stack(picks, dim=1)).squeeze(2)
