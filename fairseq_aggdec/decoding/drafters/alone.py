"""The block drafter without a verifier: its draft is the output (papers/000 Table 5, "NAR drafter")."""

import torch
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import BlockModel
from fairseq_aggdec.decoding.outputs import Decoded, Outputs
from fairseq_aggdec.decoding.roles import Draft
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
    """Decode block after block.

    The search rules hold for the drafter's scores; n-grams are blocked against the tokens that it prefers by itself.

    Args:
        model: ready to draft for this batch.
        rules: what may be chosen, for this batch; the longest output fits into the model's positions.
        first_tokens: the decoder's first input, B.
        temperature: divides the drafter's logits.

    Returns:
        one `Decoded` a row, in the rows' order; log-probabilities are the drafter's.
    """
    outputs = Outputs(first_tokens, rules, keep_drafts)
    while outputs.rows:
        logits = model.score(outputs.tokens, outputs.lengths, block_size, outputs.known_lengths)  # B x k x V
        block = outputs.block(Draft.whole(logits.argmax(dim=-1)))
        sequence = outputs.sequence(block, with_draft=True)[:, :-1]  # the last token predicts nothing here
        if temperature != 1.0:
            logits = logits / temperature
        choices = rules.choose(logits, block.starts, sequence)
        is_end = choices.tokens == rules.eos
        last = torch.where(is_end.any(dim=1), is_end.byte().argmax(dim=1), block_size - 1)  # B
        verdict = Verdict(torch.ones_like(is_end), choices.tokens, choices.log_probs)
        outcome = outputs.commit(Draft.of_lengths(choices.tokens, last + 1), verdict, last)
        if outcome.remaining is not None and outputs.rows:
            rules = rules.keep(outcome.remaining)
            model.keep(outcome.remaining)
    return outputs.finished()
