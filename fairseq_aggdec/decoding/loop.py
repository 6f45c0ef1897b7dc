"""The only draft-verify-accept loop (papers/000 Algorithm 1 and §3.2; papers/002 Algorithm 1).

    draft -> verify -> accept        until every sentence has ended

One iteration feeds each row's last committed token and its draft to the verifier, accepts the longest prefix of the
draft in which every token passes (the verifier's choice, or close enough to it: see `verification`), and commits
the verifier's next token after it: the correction at the bifurcation, or the bonus token when all passed. A row
without a draft makes an ordinary greedy step.
"""

import torch
from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import VERIFY_ALL, Drafter, DraftSchedule, Verifier
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import HOST, Decoded, Draft
from fairseq_aggdec.decoding.verification import EXACT, Acceptance, judge


def draft_verify_accept(
    drafter: Drafter,
    verifier: Verifier,
    rules: SearchRules,
    first_tokens: Tensor,
    *,
    accept: Acceptance = EXACT,
    schedule: DraftSchedule = VERIFY_ALL,
    keep_drafts: bool = False,
    device: torch.device = HOST,
) -> list[Decoded]:
    """Decode a batch; under `EXACT` the output depends neither on the drafter nor on the schedule.

    Args:
        drafter: ready to draft for this batch.
        verifier: ready to score this batch from position 0.
        rules: the search rules of this batch.
        first_tokens: the decoder's first input, B, on the host.
        accept: which draft tokens pass.
        schedule: how many draft tokens are verified.
        keep_drafts: return the drafts too.
        device: the verifier's.

    Returns:
        one `Decoded` for each row, in the rows' order.
    """
    outputs = Outputs(first_tokens, rules, keep_drafts, device)
    while outputs.rows:
        # draft (Algorithm 1, line 3), within the limits of the schedule
        limits = schedule.limits(outputs)
        if any(limits):
            draft = schedule.trim(
                outputs.fitting(drafter.propose(outputs, limits), limits)
            )
        else:
            draft = Draft.none(len(outputs.rows))

        # verify: one pass over each row's last committed token and its draft (Eqs. 5 to 7)
        unread = outputs.unread(draft)
        block = outputs.block(unread)
        sequence = (
            block.sequence(outputs.texts, rules.pad) if rules.read_output else None
        )
        chosen = verifier.verify(block, rules, accept.ranks, sequence)
        verdict = judge(chosen, accept, block, unread)

        # accept up to the bifurcation; the verifier's token there, or the bonus token
        outcome = outputs.commit(unread, verdict)
        schedule.learn(draft, outcome)

        # finished rows leave the batch
        if outcome.remaining is not None and outputs.rows:
            rules = rules.keep(outcome.remaining)
            verifier.keep(outcome.remaining)
            drafter.keep(outcome.remaining)
    return outputs.finished()
