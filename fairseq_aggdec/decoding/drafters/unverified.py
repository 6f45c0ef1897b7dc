"""The block drafter without a verifier: its draft is the output (papers/000 Table 5, "NAR drafter")."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import BlockModel
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import HOST, Decoded, Draft
from fairseq_aggdec.decoding.verification import Verdict


class ChoosingModel(BlockModel, Protocol):
    """A `BlockModel` whose draft can be an output."""

    def choose(
        self,
        texts: Sequence[Sequence[int]],
        block_size: int,
        rules: SearchRules,
        temperature: float,
    ) -> tuple[Tensor, Tensor]:
        """Predict the next k tokens of each row under the search rules of a whole output.

        n-grams are blocked against the model's best tokens. Scores are divided by the temperature.

        Returns tokens and their log-probabilities, B x k each, on the host.
        """


def decode_unverified(
    model: ChoosingModel,
    block_size: int,
    rules: SearchRules,
    first_tokens: Tensor,
    keep_drafts: bool = False,
    temperature: float = 1.0,
    device: torch.device = HOST,
) -> list[Decoded]:
    """Decode block after block, without a verifier.

    The search rules apply to the drafter's scores, divided by the temperature; n-grams are blocked against the
    drafter's best tokens. The longest output must fit into the model's positions. Arguments and result as of
    `draft_verify_accept`; log-probabilities are the drafter's.
    """
    # the drafter chooses a prefix by rules
    outputs = Outputs(first_tokens, replace(rules, prefix=None), keep_drafts, device)
    while outputs.rows:
        tokens, log_probs = model.choose(outputs.texts, block_size, rules, temperature)
        draft = Draft.up_to_end(tokens, rules.eos)
        assert draft.lengths is not None
        rows = len(draft.lengths)
        passed = [True] * tokens.numel()
        verdict = Verdict(
            [block_size] * rows,
            draft.lengths,
            passed,
            tokens.flatten().tolist(),
            log_probs.flatten().tolist(),
        )
        outcome = outputs.commit(draft, verdict)
        if outcome.remaining is not None and outputs.rows:
            rules = rules.keep(outcome.remaining)
            model.keep(outcome.remaining)
    return outputs.finished()
