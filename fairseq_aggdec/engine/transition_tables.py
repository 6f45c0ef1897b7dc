"""A drafter's transition head in decoding, with the terms that depend on a token alone in tables."""

import torch
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL
from fairseq_aggdec.engine.choose_backend import choose_backend
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
        self._backend = choose_backend(head.out.weight, AS_THE_MODEL)
        self._here = self._backend.fused(head.here)
        with torch.no_grad():
            self._before = head.before(decoder.embed(torch.arange(len(decoder.dictionary)).to(head.out.weight.device)))
            self._after = decoder.output_projection.weight @ head.out.weight

    def chain(self, features: Tensor, logits: Tensor, last: Tensor) -> Tensor:
        """Choose the tokens of a draft, B x k.

        Args:
            features: B x k x D, of the block positions, without the head's correction.
            logits: B x k x V, of these features; minus infinity for tokens that are never drafted.
            last: B, the token before each block.
        """
        best = self._backend.choice.best_entries(logits.flatten(0, 1), min(CANDIDATES, logits.size(-1)))
        scores, candidates = (entries.view(*logits.shape[:2], -1) for entries in best)  # B x k x C
        return self._backend.chain(self._before, self._after, self._here(features), candidates, scores, last)
