"""Input-guided Aggressive Decoding: the source is the draft (papers/000 §3.1, Algorithm 1; papers/002 §3.1)."""

from collections.abc import Sequence

import torch
from torch import Tensor

FOREIGN = -1
"""A source token that no output token equals."""
_OUTSIDE = -2  # stands left of the source's start: equals nothing


class SourceCopyDrafter:
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
        """
        batch_size, width = source.shape
        positions = width + 1  # the start symbol and the source
        self.min_suffix = max(1, min_suffix)
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

    block_size: int | None = None

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """See `loop.Drafter.propose`; drafts end with the first EOS."""
        match, matched = self._unique_match(tokens, lengths)
        draft = self._source.gather(1, match[:, None] + self._ahead)  # B x K
        draft_lengths = self._room.gather(1, match[:, None]).squeeze(1) * matched
        return draft, draft_lengths

    def keep(self, rows: Tensor) -> None:
        self._source, self._room, self._backwards = self._source[rows], self._room[rows], self._backwards[rows]

    def _unique_match(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Source position (0 is the start symbol) of each row's unique suffix match, B, and whether there is one, B."""
        # the output backwards from its last token; what it repeats left of its start meets only `_OUTSIDE`
        suffix = tokens.gather(1, (lengths[:, None] - 1 - self._back).clamp(min=0))  # B x (Q+1)
        windows = self._backwards.unfold(1, self._back.size(0), 1)  # B x (S+1) x (Q+1), last source position first
        agree = windows == suffix[:, None]
        agree[..., -1] = False  # suffixes longer than Q count as Q
        common = agree.view(torch.uint8).argmin(dim=-1)  # c(i): the first disagreement
        (longest, second), (index, _) = (pair.unbind(1) for pair in common.topk(2, dim=1))
        return common.size(1) - 1 - index, (longest > second) & (longest >= self.min_suffix)


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
