"""The only draft-verify-accept loop (papers/000 Algorithm 1 and §3.2; papers/002 Algorithm 1).

    draft -> verify -> accept        until every sentence has ended

One iteration feeds each row's last committed token and its draft to the verifier, accepts the longest prefix of the
draft in which every token passes (it is what the verifier would have chosen itself, or good enough: `acceptance`), and
commits the verifier's own next token after it: the correction at the bifurcation, or the bonus token when all passed. A
row without a draft makes an ordinary greedy step.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.acceptance import NOTHING, Acceptance, Verdict, exact
from fairseq_aggdec.decoding.outputs import Decoded, Outputs
from fairseq_aggdec.decoding.search_rules import SearchRules


class Drafter(Protocol):
    """Proposes what the verifier will probably say next."""

    block_size: int | None
    """The longest draft, of a drafter that costs so much that finished rows are better dropped first and drafts are
    better fed to the verifier at full width than waited for. None for cheap drafts that are often short."""

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draft a continuation of every row.

        Args:
            tokens: decoder inputs so far, B x T: the start symbol, then the output; junk behind `lengths`.
            lengths: B, the start symbol counted.
            lengths_host: the same numbers, where the host knows them.

        Returns:
            draft tokens, B x K (K may differ from call to call), and draft lengths, B, 0 for "no idea".
        """

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class Verifier(Protocol):
    """The model whose greedy output is wanted."""

    def score(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        """Read a block of tokens behind what each row has committed.

        Args:
            block: B x W tokens.
            starts: B, the position of each row's first block token; everything cached from there on is overwritten.
            longest: the largest entry of `starts`, known on the host.

        Returns:
            logits, B x W x V, which the caller may overwrite: row w predicts the token after `block[:, w]`.
        """

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class NoDrafter:
    """Greedy decoding: every block is the last token alone."""

    block_size: int | None = None

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        return tokens.new_empty(tokens.size(0), 0), torch.zeros_like(lengths)

    def keep(self, rows: Tensor) -> None:
        pass


def draft_verify_accept(
    drafter: Drafter,
    verifier: Verifier,
    rules: SearchRules,
    first_tokens: Tensor,
    keep_drafts: bool = False,
    accept: Acceptance = exact,
) -> list[Decoded]:
    """Decode a batch; under `exact` the output does not depend on the drafter.

    Args:
        drafter: ready to draft for this batch.
        verifier: ready to score this batch from position 0.
        rules: what may be chosen, for this batch.
        first_tokens: the decoder's first input, B.
        keep_drafts: return the drafts too.
        accept: which drafted tokens pass.

    Returns:
        one `Decoded` a row, in the rows' order.
    """
    outputs = Outputs(first_tokens, rules.max_len, rules.pad, keep_drafts)
    draft, draft_lengths = _proposal(drafter, outputs, rules, outputs.lengths_host)
    longest_draft = max(draft_lengths.tolist(), default=0)
    while outputs.rows:
        draft = draft[:, :longest_draft]
        verdict = _verify(verifier, rules, accept, outputs, draft, draft_lengths)

        # accept: what passed, up to the first EOS or the verifier's own token
        is_last = (verdict.tokens == rules.eos) | ~verdict.passed  # B x W; the end of a block never passes
        last = is_last.view(torch.uint8).argmax(dim=1, keepdim=True)  # B x 1
        finished = verdict.tokens.gather(1, last) == rules.eos
        accepted = last + verdict.passed.gather(1, last)
        committed = last.squeeze(1) + 1
        outputs.append(verdict.tokens, verdict.log_probs, committed)

        # the one transfer to the host that tells what happened; where it waits for a GPU, cheap drafts are made before
        news = [draft_lengths, accepted.squeeze(1), committed, finished.squeeze(1)]
        drafts_early = drafter.block_size is None and draft.is_cuda
        if drafts_early:
            next_draft, draft_lengths = _proposal(drafter, outputs, rules)
            news.append(draft_lengths)
        host = torch.stack(news).tolist()
        remaining = outputs.settle(draft, *host[:4])
        if not remaining:
            break
        if len(remaining) < draft.size(0):  # finished rows leave the batch
            rows = torch.tensor(remaining, device=draft.device)
            rules = rules.keep(rows)
            verifier.keep(rows)
            drafter.keep(rows)
            if drafts_early:
                next_draft, draft_lengths = next_draft[rows], draft_lengths[rows]
        if drafts_early:
            draft, longest_draft = next_draft, max(host[4][row] for row in remaining)
        else:
            draft, draft_lengths = _proposal(drafter, outputs, rules, outputs.lengths_host)
            longest_draft = _longest_known(draft_lengths, draft.size(1), rules.max_len + 1 - min(outputs.lengths_host))
    return outputs.finished()


def _verify(
    verifier: Verifier, rules: SearchRules, accept: Acceptance, outputs: Outputs, draft: Tensor, draft_lengths: Tensor
) -> Verdict:
    """What the verifier says after each row's last token and after each token of its draft: B x (K+1).

    Behind a row's first drafted token that did not pass, nothing of this is used.
    """
    starts = outputs.lengths - 1
    block = torch.cat([outputs.tokens.gather(1, starts[:, None]), draft], dim=1)  # B x W
    longest, shortest = max(outputs.lengths_host) - 1, min(outputs.lengths_host) - 1
    end = longest + block.size(1)
    outputs.reserve(end + 1)
    if rules.no_repeat_ngram_size > 1:  # where rules look back, they see the draft
        outputs.place(block)
    logits = verifier.score(block, starts, longest)  # B x W x V
    choices = rules.choose(logits, starts, outputs.tokens[:, :end], shortest, end - 1)
    proposed = F.pad(draft, (0, 1), value=NOTHING)  # B x W: what was drafted for each position
    if draft.size(0) > 1 or draft.is_cuda:  # otherwise the draft has no width to spare
        columns = torch.arange(block.size(1), device=block.device)
        proposed = proposed.masked_fill(columns >= draft_lengths[:, None], NOTHING)
    return accept(proposed, choices)


def _proposal(
    drafter: Drafter, outputs: Outputs, rules: SearchRules, lengths_host: Sequence[int] | None = None
) -> tuple[Tensor, Tensor]:
    """Drafts, cut so that no block reads or predicts behind the last position, where EOS is forced."""
    draft, draft_lengths = drafter.propose(outputs.tokens, outputs.lengths, lengths_host)
    if lengths_host is not None and max(lengths_host) + draft.size(1) <= rules.max_len + 1:
        return draft, draft_lengths
    return draft, torch.minimum(draft_lengths, (rules.max_len + 1 - outputs.lengths).clamp(min=0))


def _longest_known(draft_lengths: Tensor, width: int, room: int) -> int:
    """The longest of a batch's drafts, or, where a look at them would wait for a GPU, what none of them exceeds."""
    if draft_lengths.device.type == "cpu":
        return int(draft_lengths.max())
    return max(0, min(width, room))
