"""The block drafter without a verifier: its draft is the output (papers/000 Table 5, "NAR drafter")."""

import torch
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import BlockModel
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Decoded, Draft, Ragged
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.verification import Verdict


def draft_alone(
    model: BlockModel,
    block_size: int,
    rules: SearchRules,
    first_tokens: Tensor,
    keep_drafts: bool = False,
    temperature: float = 1.0,
) -> list[Decoded]:
    """Decode block after block, without a verifier.

    The search rules apply to the drafter's scores, divided by the temperature; n-grams are blocked against the
    drafter's best tokens. The longest output must fit into the model's positions. Arguments and result as of
    `draft_verify_accept`; log-probabilities are the drafter's.
    """
    outputs = Outputs(first_tokens, rules, keep_drafts)
    while outputs.rows:
        logits = model.score(outputs.texts, block_size)  # B x k x V
        block = outputs.block(Draft.whole(logits.argmax(dim=-1)))
        sequence = outputs.sequence(block)[:, :-1]  # the last token predicts nothing here
        if temperature != 1.0:
            logits = logits / temperature
        every = Ragged.full(len(outputs.rows), block_size, logits.device)
        positions, rows = block.starts[every.rows] + every.columns, every.rows
        choices = rules.keep(rows).choose(logits.flatten(0, 1), positions, sequence[rows])
        draft = Draft.up_to_end(choices.tokens.unflatten(0, logits.shape[:2]), rules.eos)
        passed = torch.ones_like(choices.tokens, dtype=torch.bool)
        outcome = outputs.commit(draft, Verdict.of(every.widths, passed, choices.tokens, choices.log_probs))
        if outcome.remaining is not None and outputs.rows:
            rules = rules.keep(outcome.remaining)
            model.keep(outcome.remaining)
    return outputs.finished()
