"""Input-guided Aggressive Decoding: the source is the draft (papers/000 §3.1, Algorithm 1; papers/002 §3.1)."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.loop import Drafter

FOREIGN = -1
"""A source token that no output token equals."""
NEAREST, GUESS = -1, -2
"""kinds of copies beside those by their suffix's length, see `SourceCopyDrafter.kinds`"""
BACK_OFF = 3
"""last tokens of an output that a guess takes for replaced ones"""
_OUTSIDE = -2  # stands left of the source's start: equals nothing


class SourceCopyDrafter(Drafter):
    """Drafts what follows, in the source, the unique occurrence of the output's suffix.

    Algorithm 1, line 3 looks for the shortest suffix of the output that occurs exactly once in the source: absent means
    no match, ambiguous means one token longer. With c(i) the length of the longest suffix of the output that ends at
    source position i, such a suffix exists exactly where c has a single maximum, and that position is the match: so one
    comparison finds it for all rows at once.

    Unlike the first implementations, matching covers the start symbol and the draft runs to EOS, so that an unedited
    sentence takes one iteration.
    """

    def __init__(
        self,
        source: Tensor,
        source_lengths: Tensor,
        eos: int,
        min_suffix: int = 1,
        max_suffix: int = 0,
        max_draft_len: int = 0,
        start: int | None = None,
        persists: bool = False,
        unfinished: Tensor | None = None,
    ) -> None:
        """
        Args:
            source: tokens in the target's vocabulary, B x S, EOS last, left-aligned; `FOREIGN` where there is none.
            source_lengths: B, EOS counted.
            eos: the end of every draft.
            min_suffix: shortest suffix that counts as a match.
            max_suffix: longest suffix to look at; 0 for any.
            max_draft_len: longest draft (L_max of papers/002 Table 3); 0 for any.
            start: the decoder's first input, x_0 = o_0 of Algorithm 1; None for `eos`, as in fairseq.
            persists: copy where Algorithm 1 would not, too. An output that repeats the source from its start is a match
                however short it is. Of several places where the suffix occurs the one is taken that is nearest to where
                the source would go on had the last token (or the last two or three) replaced as many of the source's;
                where it occurs nowhere, the source goes on there, but with a whole word and only behind one.
            unfinished: V, symbols that do not end a word; None: all do.
        """
        batch_size, width = source.shape
        positions = width + 1  # the start symbol and the source
        self.min_suffix = max(1, min_suffix)
        self._persists = persists
        self._eos = eos
        self._max_draft_len = max_draft_len
        reach = positions if max_suffix == 0 else min(positions, max_suffix)
        longest_draft = width if max_draft_len == 0 else min(width, max_draft_len)
        self._back = torch.arange(reach + 1, device=source.device)
        self._ahead = torch.arange(1, longest_draft + 1, device=source.device)

        # Where a suffix can end. An output holds EOS nowhere but at its start, so one inside the source, its last or a
        # literal `</s>`, is no context, nor is what follows the last: with x_0 in front this needs no special case.
        # Kept backwards, so that every window of it reads from a position towards the start: B x (S+1+Q)
        begin = source.new_full((batch_size, 1), eos if start is None else start)
        context = torch.cat([begin, source.masked_fill(source == eos, FOREIGN)], dim=1)
        outside = source.new_full((batch_size, reach), _OUTSIDE)
        self._backwards = torch.cat([outside, context], dim=1).flip(1)

        # What can follow: drafts stop after an EOS and before a foreign token. B x (S+1), number of tokens from there
        stops = (source == eos) | (source == FOREIGN)
        columns = torch.arange(width, device=source.device)
        next_stop = torch.where(stops, columns, width).flip(1).cummin(dim=1).values.flip(1)
        ends_with_eos = (source.gather(1, next_stop.clamp(max=width - 1)) == eos) & (next_stop < width)
        room = (next_stop + ends_with_eos.long() - columns).clamp(min=0)
        room = torch.minimum(room, (source_lengths[:, None] - columns).clamp(min=0))
        self._room = torch.cat([room, torch.zeros_like(room[:, :1])], dim=1).clamp(max=longest_draft)
        self._source = torch.cat([begin, source.clamp(min=0), begin.expand(-1, longest_draft)], dim=1)
        self._last = self._source.size(1) - 1
        self._kinds = source_lengths  # B, of the last call
        self._unfinished = unfinished
        self._word_end = torch.empty(0)
        if persists:  # only then is anything guessed
            ends = torch.arange(positions, device=source.device).expand_as(context)
            if unfinished is not None:
                ends = torch.where(unfinished[context.clamp(min=0)] & (context >= 0), width, ends)
            self._word_end = ends.flip(1).cummin(dim=1).values.flip(1)  # B x (S+1), at or behind each position

    block_size: int | None = None

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """See `loop.Drafter.propose`; drafts end with the first EOS."""
        common = self._common_lengths(tokens, lengths)
        match, longest, is_unique = _best_match(common)
        if not self._persists:
            matches = is_unique & (longest >= self.min_suffix)
        else:
            matches = is_unique & (longest >= lengths.clamp(max=self.min_suffix))
        self._kinds = torch.where(lengths == 1, 0, longest)
        if self._persists and not bool(matches.all()):
            width = self._room.size(1) - 1
            expected, is_known = self._expected(tokens, lengths)
            nearest = _nearest(common, longest, expected)
            guess = self._word_end.gather(1, expected.clamp(max=width)[:, None]).squeeze(1)
            if self._unfinished is not None:
                last = tokens.gather(1, lengths[:, None] - 1).squeeze(1)
                is_known = is_known & ~((longest == 0) & self._unfinished[last])
            match = torch.where(matches, match, torch.where(longest > 0, nearest, guess))
            kinds = torch.where((longest > 0) & ~is_unique, NEAREST, GUESS)
            self._kinds = torch.where(matches, self._kinds, kinds)
            matches = matches | is_known
        draft = self._source.gather(1, match[:, None] + self._ahead)  # B x K
        draft_lengths = self._room.gather(1, match[:, None]).squeeze(1) * matches
        return draft, draft_lengths

    def kinds(self) -> list[int]:
        """How each row's copy was found at the last call of `propose`: by a suffix of so many tokens, 0 for the start
        symbol alone, or as `NEAREST` or `GUESS`."""
        return self._kinds.tolist()

    def rejoin(
        self,
        tokens: Tensor,
        lengths: Tensor,
        draft: Tensor,
        draft_lengths: Tensor,
        lengths_host: Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Go on with the source where somebody else's draft meets it.

        Args:
            tokens, lengths, lengths_host: see `loop.Drafter.propose`.
            draft: B x K tokens that are proposed behind the output; junk behind `draft_lengths`.
            draft_lengths: B; an EOS stands at the end of a draft only.

        Returns:
            drafts and their lengths as from `propose`: each row's draft up to its first token where a suffix of output
            and draft (of any length, whatever `min_suffix`) occurs exactly once in the source, and what the source has
            behind that; the draft itself where there is no such token.
        """
        if draft.size(1) == 0:
            return draft, draft_lengths
        common = self._common_lengths(tokens, lengths)
        context = self._backwards[:, : common.size(1)]
        matches = []
        for token in draft.unbind(1):  # what agrees up to one position agrees up to the next if that has the next token
            common = (F.pad(common[:, 1:], (0, 1)) + 1).clamp(max=self._back.size(0) - 1)
            common = common.masked_fill(context != token[:, None], 0)
            matches.append(common)
        match, _, is_unique = _best_match(torch.stack(matches, dim=1))  # B x K
        room = self._room.gather(1, match)
        columns = torch.arange(draft.size(1) + self._ahead.size(0), device=draft.device)
        joins = is_unique & (room > 0) & (draft != self._eos)
        joins &= columns[: draft.size(1)] < draft_lengths[:, None]
        column = joins.view(torch.uint8).argmax(dim=1, keepdim=True)  # B x 1: where the first meets the source
        has_joined = joins.gather(1, column)
        behind = columns - column
        source = self._source.gather(1, (match.gather(1, column) + behind.clamp(min=0)).clamp(max=self._last))
        joined = torch.where(has_joined & (behind > 0), source, F.pad(draft, (0, self._ahead.size(0))))
        joined_lengths = (column + 1 + room.gather(1, column)).squeeze(1)
        if self._max_draft_len > 0:
            joined_lengths = joined_lengths.clamp(max=self._max_draft_len)
        return joined, torch.where(has_joined.squeeze(1), joined_lengths, draft_lengths)

    def keep(self, rows: Tensor) -> None:
        self._source, self._room, self._backwards = self._source[rows], self._room[rows], self._backwards[rows]
        if self._persists:
            self._word_end = self._word_end[rows]

    def _expected(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Where the source goes on if the last tokens replace as many of its own, B, and whether that is known, B."""
        expected, is_known = torch.zeros_like(lengths), torch.zeros_like(lengths, dtype=torch.bool)
        for back in range(BACK_OFF, 0, -1):
            shorter = (lengths - back).clamp(min=1)
            match, _, is_unique = _best_match(self._common_lengths(tokens, shorter))
            matches = is_unique & (lengths > back)
            expected, is_known = torch.where(matches, match + back, expected), is_known | matches
        return expected, is_known

    def _common_lengths(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """c(i), B x (S+1), the last source position first."""
        # the output backwards from its last token; what it repeats left of its start meets only `_OUTSIDE`
        suffix = tokens.gather(1, (lengths[:, None] - 1 - self._back).clamp(min=0))  # B x (Q+1)
        windows = self._backwards.unfold(1, self._back.size(0), 1)  # B x (S+1) x (Q+1)
        agree = windows == suffix[:, None]
        agree[..., -1] = False  # suffixes longer than Q count as Q
        return agree.view(torch.uint8).argmin(dim=-1)  # the first disagreement


def _best_match(common: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where, in start symbol and source, the longest suffix ends, its length, and whether it ends nowhere else.

    Args:
        common: c(i), ... x (S+1), the last source position first.

    Returns:
        three times ...
    """
    (longest, second), (index, _) = (pair.unbind(-1) for pair in common.topk(2, dim=-1))
    return common.size(-1) - 1 - index, longest, longest > second


def _nearest(common: Tensor, longest: Tensor, expected: Tensor) -> Tensor:
    """Of the places where each row's longest suffix ends, the one that is nearest to where it is expected, B."""
    positions = torch.arange(common.size(1) - 1, -1, -1, device=common.device)
    distances = 2 * (positions - expected[:, None]).abs() + (positions > expected[:, None])  # of two the first
    far = 4 * (common.size(1) + BACK_OFF)
    return positions[distances.masked_fill(common != longest[:, None], far).argmin(dim=1)]


def align_source(source: Tensor, pad: int, eos: int, to_target: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Bring a padded batch of source sentences into the form that `SourceCopyDrafter` takes.

    Args:
        source: B x S, padded on either side; a `pad` between other tokens is text.
        pad: padding symbol.
        eos: end of sentence; appended where the source has none.
        to_target: V_source, the target symbol of every source symbol or `FOREIGN`; None where dictionaries are shared.

    Returns:
        tokens, B x (S+1), left-aligned, and their lengths, B, EOS counted.
    """
    width = source.size(1)
    columns = torch.arange(width + 1, device=source.device)
    text = source != pad
    first = torch.where(text.any(dim=1), text.long().argmax(dim=1), width)
    end = width - text.flip(1).long().argmax(dim=1)
    end = torch.maximum(torch.where(text.any(dim=1), end, width), first)
    index = (first[:, None] + columns).clamp(max=width - 1)
    aligned = source.gather(1, index)
    lengths = end - first
    last = aligned.gather(1, (lengths - 1).clamp(min=0)[:, None]).squeeze(1)
    has_eos = (lengths > 0) & (last == eos)
    lengths = torch.where(has_eos, lengths, lengths + 1)
    if to_target is not None:
        aligned = to_target[aligned]
    aligned = aligned.masked_fill(columns >= lengths[:, None] - 1, FOREIGN)
    aligned = aligned.masked_fill(columns == lengths[:, None] - 1, eos)
    return aligned, lengths
