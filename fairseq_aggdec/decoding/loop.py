"""The only draft-verify-accept loop (papers/000 Algorithm 1 and §3.2; papers/002 Algorithm 1).

    draft -> verify -> accept        until every sentence has ended

One iteration feeds each row's last committed token and its draft to the verifier, accepts the longest prefix of the
draft in which every token passes (it is what the verifier would have chosen itself, or good enough: `acceptance`), and
commits the verifier's own next token after it: the correction at the bifurcation, or the bonus token when all passed. A
row without a draft makes an ordinary greedy step.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.acceptance import NOTHING, Acceptance, MinimumBlock, Verdict, exact, joined
from fairseq_aggdec.decoding.draft_width import PACKING, DraftWidth
from fairseq_aggdec.decoding.outputs import Decoded, Outputs
from fairseq_aggdec.decoding.packing import Packing
from fairseq_aggdec.decoding.patience import Patience
from fairseq_aggdec.decoding.search_rules import SearchRules

_LONG = 32  # tokens; where drafts this long promise nothing, longer ones do not either


class Drafter(Protocol):
    """Proposes what the verifier will probably say next. Subclasses need `propose` and `keep` at least."""

    block_size: int | None
    """The longest draft, of a drafter that costs much. None for cheap drafts of any length. The loop may lower it from
    call to call."""

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

    def unread(self, lengths_host: Sequence[int]) -> int:
        """What the next draft would have to read first, in tokens of all rows: those committed since the last one.

        Args:
            lengths_host: see `propose`.

        Returns:
            0 where that costs nothing.
        """
        return 0

    def kinds(self) -> Sequence[int] | None:
        """Of what kind each row's last draft is: those of a kind are about equally good. None: all are alike."""
        return None

    def learn(self, drafted: Sequence[int], accepted: Sequence[int]) -> None:
        """Take in what became of the draft that each row was last given; before `keep`.

        Args:
            drafted: how many of its tokens were verified.
            accepted: how many of them passed.
        """
        return None

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class Verifier(Protocol):
    """The model whose greedy output is wanted."""

    packs: bool = False
    """Whether `score_packed` is faster than reading what pads a block, too."""

    def score(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        """Read a block of tokens behind what each row has committed.

        Args:
            block: B x W tokens.
            starts: B, the position of each row's first block token; everything cached from there on is overwritten.
            longest: the largest entry of `starts`, known on the host.

        Returns:
            logits or log-probabilities, B x W x V, the temperature applied: row w predicts the token after
            `block[:, w]`.
        """

    def score_packed(self, block: Tensor, starts: Tensor, longest: int, packing: Packing) -> Tensor:
        """`score` for the tokens of a block alone, N x V; what stands behind a row's tokens need not be read."""
        return packing.pack(self.score(block, starts, longest))

    def score_in_parts(
        self, block: Tensor, starts: Tensor, longest: int, packing: Packing | None = None
    ) -> Iterator[Tensor]:
        """`score`, or with a packing `score_packed`, piece by piece: all logits may be more than the caches hold.

        Returns:
            logits of the block's first columns, B x w x V, then of the next; packed, of its first tokens, n x V, ...
        """
        if packing is None:
            yield self.score(block, starts, longest)
        else:
            yield self.score_packed(block, starts, longest, packing)

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class NoDrafter(Drafter):
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
    widths: DraftWidth | None = None,
    vocabulary: int | None = None,
) -> list[Decoded]:
    """Decode a batch; under `exact` the output does not depend on the drafter.

    Args:
        drafter: ready to draft for this batch.
        verifier: ready to score this batch from position 0.
        rules: what may be chosen, for this batch.
        first_tokens: the decoder's first input, B.
        keep_drafts: return the drafts too.
        accept: which drafted tokens pass.
        widths: shortens drafts where that saves time; None: all are verified as they come.
        vocabulary: symbols that the verifier knows, in whose place a drafter may say anything; None: no drafter does.

    Returns:
        one `Decoded` a row, in the rows' order.
    """
    outputs = Outputs(first_tokens, rules.max_len, rules.pad, keep_drafts)
    # cut to widths of their own only under a criterion that judges each token by itself
    packs = verifier.packs and accept is exact
    proposals = _Proposals(drafter, rules.max_len, first_tokens.size(0), widths, packs, vocabulary)
    draft = proposals.next(outputs)
    while outputs.rows:
        verdict = _verify(verifier, rules, accept, outputs, draft)

        # accept: what passed, up to the first EOS or the verifier's own token
        is_last = (verdict.tokens == rules.eos) | ~verdict.passed  # B x W; the end of a block never passes
        last = is_last.view(torch.uint8).argmax(dim=1, keepdim=True)  # B x 1
        finished = verdict.tokens.gather(1, last) == rules.eos
        accepted = last + verdict.passed.gather(1, last)
        committed = last.squeeze(1) + 1
        outputs.append(verdict.tokens, verdict.log_probs, committed)

        # the one transfer to the host that tells what happened
        news = torch.stack([draft.lengths, accepted.squeeze(1), committed, finished.squeeze(1)])
        drafted, passed, added, ended = news.tolist()
        proposals.learn(outputs.rows, drafted, passed, draft.kinds)
        remaining = outputs.settle(draft.tokens, drafted, passed, added, ended)
        if not remaining:
            break
        if len(remaining) < draft.tokens.size(0):  # finished rows leave the batch
            rows = torch.tensor(remaining, device=first_tokens.device)
            rules = rules.keep(rows)
            verifier.keep(rows)
            drafter.keep(rows)
        draft = proposals.next(outputs)
    return outputs.finished()


@dataclass(frozen=True)
class _Drafts:
    """What is to be verified."""

    tokens: Tensor
    """B x K; junk behind `lengths`"""
    lengths: Tensor
    """B"""
    kinds: Sequence[int] | None = None
    """see `Drafter.kinds`"""
    packing: Packing | None = None
    """of each row's last token and its draft, B x (K+1)"""


def _verify(verifier: Verifier, rules: SearchRules, accept: Acceptance, outputs: Outputs, draft: _Drafts) -> Verdict:
    """What the verifier says after each row's last token and after each token of its draft: B x (K+1).

    Behind a row's first drafted token that did not pass, nothing of this is used.
    """
    starts, packing = outputs.lengths - 1, draft.packing
    block = torch.cat([outputs.tokens.gather(1, starts[:, None]), draft.tokens], dim=1)  # B x W
    longest, shortest = max(outputs.lengths_host) - 1, min(outputs.lengths_host) - 1
    end = longest + block.size(1)
    outputs.reserve(end + 1)
    if rules.no_repeat_ngram_size > 1:  # where rules look back, they see the draft
        outputs.place(block)
    sequence = outputs.tokens[:, :end]
    proposed = F.pad(draft.tokens, (0, 1), value=NOTHING)  # B x W: what was drafted for each position
    if block.size(0) > 1 or block.is_cuda:  # otherwise the draft has no width to spare
        columns = torch.arange(block.size(1), device=block.device)
        proposed = proposed.masked_fill(columns >= draft.lengths[:, None], NOTHING)
    verdicts: list[Verdict] = []
    first = 0  # column; packed, token
    if packing is None:
        parts: Iterable[Tensor]
        if isinstance(accept, MinimumBlock):  # judges no position by itself
            parts = [verifier.score(block, starts, longest)]
        else:
            parts = verifier.score_in_parts(block, starts, longest)
        for logits in parts:  # B x w x V
            choices = rules.choose(logits, starts + first, sequence, shortest, end - 1)
            verdicts.append(accept(proposed[:, first : first + logits.size(1)], choices))
            first += logits.size(1)
        return joined(verdicts, dim=1)
    proposed, positions = packing.pack(proposed)[:, None], starts[packing.rows] + packing.columns
    for logits in verifier.score_in_parts(block, starts, longest, packing):  # n x V: every token is a row
        part = slice(first, first + logits.size(0))
        rows = packing.rows[part]
        seen = sequence if rules.no_repeat_ngram_size <= 1 else sequence[rows]
        choices = rules.keep(rows).choose(logits[:, None], positions[part], seen, shortest, end - 1)
        verdicts.append(accept(proposed[part], choices))
        first += logits.size(0)
    # behind a row's tokens its last one is repeated, which has not passed
    return Verdict(*(packing.spread(entries.squeeze(1)) for entries in joined(verdicts, dim=0)))


def _nothing(outputs: Outputs) -> _Drafts:
    """No draft for any row."""
    return _Drafts(outputs.tokens.new_empty(len(outputs.rows), 0), torch.zeros_like(outputs.lengths))


class _Proposals:
    """A drafter's drafts, none longer than is allowed or worth it."""

    def __init__(
        self,
        drafter: Drafter,
        max_len: int,
        rows: int,
        widths: DraftWidth | None,
        packs: bool,
        vocabulary: int | None,
    ) -> None:
        self._drafter = drafter
        self._block_size = drafter.block_size
        self._end = max_len + 1
        self._widths = widths
        self._patience = Patience(rows)
        self._packs = packs
        self._vocabulary = vocabulary

    def next(self, outputs: Outputs) -> _Drafts:
        """The drafts for the next block."""
        rows, widths, block_size = len(outputs.rows), self._widths, self._block_size
        wanted = _LONG if block_size is None else block_size
        waiting: Sequence[bool] = ()
        if widths is not None:
            waiting = self._patience.waiting(outputs.rows)
            if all(waiting):
                return _nothing(outputs)
            unread, position = self._drafter.unread(outputs.lengths_host), max(outputs.lengths_host)
            wanted = widths.choose(rows, wanted, unread, self._packs, position)
            if wanted == 0:  # not even if every row had a draft
                return _nothing(outputs)
            if block_size is not None:
                self._drafter.block_size = wanted
        draft, lengths = self._cut(outputs)
        if lengths.device.type != "cpu" and widths is None:  # a look at the lengths would wait for the device
            longest = max(0, min(draft.size(1), self._end - min(outputs.lengths_host)))
            return _Drafts(draft[:, :longest], lengths)
        known, kinds = lengths.tolist(), None
        if any(waiting):
            known = [0 if waits else length for waits, length in zip(waiting, known, strict=True)]
            lengths = torch.tensor(known, device=lengths.device)
        if widths is not None and (block_size is None or max(known) > wanted):  # drafts of any length
            kinds = self._drafter.kinds()
            if block_size is None:
                widths.see(known, kinds)
            worth = widths.cut(known, kinds, self._packs)
            if worth != known:
                known, lengths = worth, torch.tensor(worth, device=lengths.device)
        longest = max(known, default=0)
        packing = None
        if widths is not None and self._packs and rows * longest - sum(known) > PACKING:
            packing = Packing.of([1 + length for length in known], lengths.device)
        return _Drafts(draft[:, :longest], lengths, kinds, packing)

    def learn(
        self, rows: Sequence[int], drafted: Sequence[int], accepted: Sequence[int], kinds: Sequence[int] | None
    ) -> None:
        """Take in how many tokens of each row's draft were verified and how many passed; before rows leave."""
        self._drafter.learn(drafted, accepted)
        if self._widths is not None:
            self._widths.learn(drafted, accepted, kinds)
            self._patience.learn(rows, drafted, accepted)

    def _cut(self, outputs: Outputs) -> tuple[Tensor, Tensor]:
        """Drafts, cut so that no block reads or predicts behind the last position, where EOS is forced."""
        draft, draft_lengths = self._drafter.propose(outputs.tokens, outputs.lengths, outputs.lengths_host)
        if self._vocabulary is not None:  # what the verifier cannot read becomes what it can, which passes if right
            draft = draft.clamp(0, self._vocabulary - 1)
        if max(outputs.lengths_host) + draft.size(1) <= self._end:
            return draft, draft_lengths
        return draft, torch.minimum(draft_lengths, (self._end - outputs.lengths).clamp(min=0))
