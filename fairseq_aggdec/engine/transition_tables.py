"""A drafter's transition head in decoding, with the terms that depend on a token alone in tables."""

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.engine.arithmetic.linear import fused
from fairseq_aggdec.engine.arithmetic.precision import AS_THE_MODEL
from fairseq_aggdec.engine.native.modules import best_entries, chain, kernels_for
from fairseq_aggdec.models.nar_drafter import NarDrafterDecoder

CANDIDATES = 16  # per position; the cost grows with the square, and 64 changes hardly any draft


class TransitionTables:
    """`TransitionHead` over the best candidates of each position of a block.

    The head changes the score of token b after token a by relu(A embed(a) + B features + bias) . (W^T output(b)): both
    A embed(a) and W^T output(b) are rows of tables, V x H.
    """

    def __init__(self, decoder: NarDrafterDecoder) -> None:
        """Build the tables from the present weights of a decoder with a transition head, in evaluation mode."""
        head = decoder.transitions
        assert head is not None
        self._here = fused(head.here)
        with torch.no_grad():
            self._before = head.before(decoder.embed(torch.arange(len(decoder.dictionary)).to(head.out.weight.device)))
            self._after = decoder.output_projection.weight @ head.out.weight
        self._kernels = kernels_for(self._after, AS_THE_MODEL, None)

    def chain(self, features: Tensor, logits: Tensor, last: Tensor) -> Tensor:
        """Choose the tokens of a draft, B x k.

        Args:
            features: B x k x D, of the block positions, without the head's correction.
            logits: B x k x V, of these features; minus infinity for tokens that are never drafted.
            last: B, the token before each block.
        """
        best = best_entries(logits.flatten(0, 1), min(CANDIDATES, logits.size(-1)))
        scores, candidates = (entries.view(*logits.shape[:2], -1) for entries in best)  # B x k x C
        if self._kernels is not None:
            return chain(self._kernels, self._before, self._after, self._here(features), candidates, scores, last)
        first = last[:, None, None].expand(-1, 1, candidates.size(-1))
        before = torch.cat([first, candidates[:, :-1]], dim=1)
        hidden = F.embedding(before, self._before).add_(self._here(features)[:, :, None]).relu_()  # B x k x C x H
        transitions = hidden @ F.embedding(candidates, self._after).transpose(-1, -2)  # B x k x C x C
        return chained(candidates, scores, transitions)


def chained(candidates: Tensor, scores: Tensor, transitions: Tensor) -> Tensor:
    """The best candidate of each position, given the candidate chosen before it.

    All scores are computed at once; the choice is a walk through small tables.

    Args:
        candidates: B x k x C tokens.
        scores: B x k x C, the scores of the candidates without transitions.
        transitions: B x k x C x C, added to the score of candidate j (last dimension) after candidate i of the
            position before. The first position has one token before it, and reads entry i = 0.

    Returns:
        B x k tokens.
    """
    best_after = (scores[..., None, :] + transitions).argmax(dim=-1)  # B x k x C: the best j after each i
    chosen = best_after.new_zeros(best_after.size(0), 1)
    picks = []
    for position in best_after.unbind(dim=1):
        chosen = position.gather(1, chosen)
        picks.append(chosen)
    return candidates.gather(2, torch.stack(picks, dim=1)).squeeze(2)
