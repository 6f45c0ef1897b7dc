"""`SourceCopyDrafter` on lists.

On a CPU, the fixed cost of some thirty tensor operations a draft is most of the drafter's time, and a list is searched
within microseconds: the places of a token are known, and there are few.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.input_guided import BACK_OFF, FOREIGN, GUESS, NEAREST
from fairseq_aggdec.decoding.loop import Drafter


class SingleSourceDrafter(Drafter):
    """Drafts as `SourceCopyDrafter` does, whose documentation holds, for a batch of one row."""

    block_size: int | None = None

    def __init__(
        self,
        source: Sequence[int],
        eos: int,
        min_suffix: int = 1,
        max_suffix: int = 0,
        max_draft_len: int = 0,
        start: int | None = None,
        persists: bool = False,
        unfinished: Sequence[bool] | None = None,
    ) -> None:
        """
        Args:
            source: tokens in the target's vocabulary, EOS last; `FOREIGN` where there is none.
            eos, min_suffix, max_suffix, max_draft_len, start, persists, unfinished: see `SourceCopyDrafter`.
        """
        begin = eos if start is None else start
        self._context = [begin, *(FOREIGN if token == eos else token for token in source)]
        self._ends: dict[int, list[int]] = {}  # of each token, where it stands
        for end, token in enumerate(self._context):
            self._ends.setdefault(token, []).append(end)
        self._min_suffix = max(1, min_suffix)
        self._persists = persists
        self._eos = eos
        self._max_draft_len = max_draft_len
        self._max_suffix = max_suffix or len(self._context)
        longest = max_draft_len or len(source)
        room = [0]  # how many tokens can follow, from the end: up to an EOS, to before a foreign token
        for token in reversed(source):
            room.append(0 if token == FOREIGN else 1 if token == eos else room[-1] + 1)
        self._room = [min(tokens, longest) for tokens in reversed(room)]
        self._source = torch.tensor([source])  # 1 x S
        self._kind = 0  # of the last copy
        self._unfinished = unfinished

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """See `loop.Drafter.propose`; drafts end with the first EOS and have no width to spare."""
        length = int(lengths) if lengths_host is None else lengths_host[0]
        first, room = self.copy(tokens[0, :length].tolist())
        return self._source[:, first : first + room], torch.tensor([room])

    def copy(self, output: list[int]) -> tuple[int, int]:
        """Where in the source the draft begins behind an output (the start symbol first), and how long it is."""
        match = self._place(output)
        if match is None or match >= len(self._room):
            return 0, 0
        return match, self._room[match]

    def kinds(self) -> list[int]:
        """See `SourceCopyDrafter.kinds`."""
        return [self._kind]

    def rejoin(
        self,
        tokens: Tensor,
        lengths: Tensor,
        draft: Tensor,
        draft_lengths: Tensor,
        lengths_host: Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """See `SourceCopyDrafter.rejoin`."""
        length = int(lengths) if lengths_host is None else lengths_host[0]
        text = tokens[0, :length].tolist()
        for number, token in enumerate(draft[0, : int(draft_lengths)].tolist(), start=1):
            if token == self._eos:
                break
            text.append(token)
            _, ends = self._matches(text)
            if len(ends) == 1 and self._room[ends[0]] > 0:
                room = self._room[ends[0]]
                joined = torch.cat([draft[:, :number], self._source[:, ends[0] : ends[0] + room]], dim=1)
                if self._max_draft_len > 0:
                    joined = joined[:, : self._max_draft_len]
                return joined, torch.tensor([joined.size(1)])
        return draft, draft_lengths

    def keep(self, rows: Tensor) -> None:
        pass

    def _place(self, output: list[int]) -> int | None:
        """Where, in start symbol and source, that ends which the draft stands behind."""
        longest, ends = self._matches(output)
        least = min(self._min_suffix, len(output)) if self._persists else self._min_suffix
        self._kind = longest if len(output) > 1 else 0
        if len(ends) == 1 and longest >= least:
            return ends[0]
        if not self._persists:
            return None
        expected = self._expected(output)
        if expected is None or not ends:
            self._kind = GUESS
            return None if expected is None else self._guess(output[-1], expected)
        self._kind = NEAREST if len(ends) > 1 else GUESS  # a single place, but for too short a suffix
        return min(ends, key=lambda end: abs(end - expected))

    def _guess(self, last: int, expected: int) -> int | None:
        """Where the word ends that is expected somewhere; None while the output's own word has not ended."""
        if self._unfinished is None:
            return expected
        if self._unfinished[last]:
            return None
        context = self._context
        while expected < len(context) and context[expected] >= 0 and self._unfinished[context[expected]]:
            expected += 1
        return expected

    def _expected(self, output: list[int]) -> int | None:
        """Where the source goes on if the output's last tokens have replaced as many of its own."""
        for back in range(1, min(BACK_OFF, len(output) - 1) + 1):
            _, ends = self._matches(output[:-back])
            if len(ends) == 1:
                return ends[0] + back
        return None

    def _matches(self, output: list[int]) -> tuple[int, list[int]]:
        """The length of the longest suffix of the output that start symbol and source have, and where it ends there."""
        context = self._context
        limit = min(len(output), self._max_suffix)
        longest: int = 0
        ends: list[int] = []
        for end in self._ends.get(output[-1], ()):
            common = 1
            while common < limit and common <= end and context[end - common] == output[-1 - common]:
                common += 1
            if common > longest:
                longest, ends = common, [end]
            elif common == longest:
                ends.append(end)
        return longest, ends


class SourcesDrafter(Drafter):
    """Drafts as `SourceCopyDrafter` does, for a batch on a CPU."""

    block_size: int | None = None

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        eos: int,
        min_suffix: int = 1,
        max_suffix: int = 0,
        max_draft_len: int = 0,
        start: int | None = None,
        persists: bool = False,
        unfinished: Sequence[bool] | None = None,
    ) -> None:
        """
        Args:
            sources: tokens of each row in the target's vocabulary, EOS last; `FOREIGN` where there is none.
            eos, min_suffix, max_suffix, max_draft_len, start, persists, unfinished: see `SourceCopyDrafter`.
        """
        options = (eos, min_suffix, max_suffix, max_draft_len, start, persists, unfinished)
        self._rows = [SingleSourceDrafter(source, *options) for source in sources]
        longest = max(map(len, sources))
        padded = [[*source, *[eos] * (2 * longest - len(source))] for source in sources]
        self._source = torch.tensor(padded).clamp_(min=0)  # B x 2S; no draft reaches a foreign token

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """See `loop.Drafter.propose`; drafts end with the first EOS."""
        known = lengths.tolist() if lengths_host is None else lengths_host
        outputs = tokens[:, : max(known)].tolist()
        copies = [row.copy(output[:length]) for row, output, length in zip(self._rows, outputs, known, strict=True)]
        first, room = torch.tensor(copies).unbind(1)
        ahead = torch.arange(max(room for _, room in copies))
        return self._source.gather(1, first[:, None] + ahead), room

    def kinds(self) -> list[int]:
        """See `SourceCopyDrafter.kinds`."""
        return [kind for row in self._rows for kind in row.kinds()]

    def rejoin(
        self,
        tokens: Tensor,
        lengths: Tensor,
        draft: Tensor,
        draft_lengths: Tensor,
        lengths_host: Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """See `SourceCopyDrafter.rejoin`."""
        if draft.size(1) == 0:
            return draft, draft_lengths
        known = lengths.tolist() if lengths_host is None else lengths_host
        parts = (part.split(1) for part in (tokens, lengths, draft, draft_lengths))
        joined = [copier.rejoin(*row, [length]) for copier, *row, length in zip(self._rows, *parts, known, strict=True)]
        width = max(one.size(1) for one, _ in joined)
        return torch.cat([F.pad(one, (0, width - one.size(1))) for one, _ in joined]), torch.cat([n for _, n in joined])

    def keep(self, rows: Tensor) -> None:
        self._rows = [self._rows[row] for row in rows.tolist()]
        self._source = self._source[rows]


def align_sentence(source: Tensor, pad: int, eos: int, to_target: Tensor | None = None) -> list[int]:
    """`align_source` for a batch of one row, 1 x S: its tokens, EOS last."""
    symbols = source[0].tolist()
    first, end = 0, len(symbols)
    while end > 0 and symbols[end - 1] == pad:
        end -= 1
    while first < end and symbols[first] == pad:
        first += 1
    if first < end and symbols[end - 1] == eos:
        end -= 1
    if to_target is not None:
        symbols = to_target[source[0]].tolist()
    return [*symbols[first:end], eos]
