"""A drafter's transition head while decoding: what depends on a token alone is computed once, before any sentence."""

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.chaining import chained
from fairseq_aggdec.engine.arithmetic.linear import fused
from fairseq_aggdec.models.nar_drafter import NarDrafterDecoder

CANDIDATES = 16  # a position; 64 changes hardly any draft, and the head costs their square


class TransitionTables:
    """`TransitionHead` over the few best candidates of each position of a block.

    The head changes the score of token b after token a by relu(A embed(a) + B features + bias) . (W^T output(b)): both
    A embed(a) and W^T output(b) are rows of tables, V x H.
    """

    def __init__(self, decoder: NarDrafterDecoder) -> None:
        """
        Args:
            decoder: one with a transition head, in evaluation mode; its weights are taken as they are now.
        """
        head = decoder.transitions
        assert head is not None
        self._here = fused(head.here)
        with torch.no_grad():
            self._before = head.before(decoder.embed(torch.arange(len(decoder.dictionary)).to(head.out.weight.device)))
            self._after = decoder.output_projection.weight @ head.out.weight

    def chain(self, features: Tensor, logits: Tensor, last: Tensor) -> Tensor:
        """The tokens of a draft.

        Args:
            features: B x k x D, of the block positions, without the head's correction.
            logits: B x k x V, of these features; minus infinity for what is never drafted.
            last: B, the token before each block.

        Returns:
            B x k.
        """
        scores, candidates = logits.topk(min(CANDIDATES, logits.size(-1)), dim=-1)  # B x k x C
        first = last[:, None, None].expand(-1, 1, candidates.size(-1))
        before = torch.cat([first, candidates[:, :-1]], dim=1)
        hidden = F.embedding(before, self._before).add_(self._here(features)[:, :, None]).relu_()  # B x k x C x H
        transitions = hidden @ F.embedding(candidates, self._after).transpose(-1, -2)  # B x k x C x C
        return chained(candidates, scores, transitions)
