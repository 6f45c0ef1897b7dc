"""Input-guided Aggressive Decoding: the source is the draft (papers/000 §3.1, Algorithm 1; papers/002 §3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter, Kind, Match, Origin

FOREIGN = -1
"""A source token that no output token equals."""
_REPLACED = 3
"""last tokens of an output that a guess takes for replaced ones, at most"""

_Ends = dict[int, int]
"""Where in a source suffixes of the output end, and the length of the longest one that ends there: c(i)."""


class SourceMatcher:
    """Finds, in one source, the place that an output has reached.

    Algorithm 1, line 3 looks for the shortest suffix of the output that occurs exactly once in the source: absent means
    no match, ambiguous means one token longer. With c(i) the length of the longest suffix of the output that ends at
    source position i, such a suffix exists exactly where c has a single maximum, and that position is the match. A
    token more of the output makes c(i + 1) of c(i) where the source has that token, and 0 elsewhere.

    Unlike the first implementations, matching covers the start symbol and the draft runs to EOS, so that an unedited
    sentence takes one iteration.
    """

    def __init__(
        self,
        source: Sequence[int],
        eos: int,
        start: int | None = None,
        min_suffix: int = 1,
        max_suffix: int = 0,
        max_draft_len: int = 0,
        persists: bool = False,
        unfinished: Sequence[bool] | None = None,
    ) -> None:
        """
        Args:
            source: tokens in the target's vocabulary, EOS last; `FOREIGN` where there is none.
            eos: the end of every draft.
            start: the decoder's first input, x_0 = o_0 of Algorithm 1; None for `eos`, as in fairseq.
            min_suffix: shortest suffix that counts as a match.
            max_suffix: longest suffix to look at; 0 for any.
            max_draft_len: longest draft (L_max of papers/002 Table 3); 0 for any.
            persists: copy where Algorithm 1 would not, too. An output that repeats the source from its start is a match
                however short it is. Of several places where the suffix occurs the one is taken that is nearest to where
                the source would go on had the last token (or the last two or three) replaced as many of the source's;
                where it occurs nowhere, the source goes on there, but with a whole word and only behind one.
            unfinished: V, symbols that do not end a word; None: all do.
        """
        # An output holds EOS nowhere but at its start, so one inside the source, its last or a literal `</s>`, is no
        # context: with x_0 in front this needs no special case.
        self._context = [eos if start is None else start, *(FOREIGN if token == eos else token for token in source)]
        self._places: dict[int, list[int]] = {}  # of each token, where it stands in start symbol and source
        for place, token in enumerate(self._context):
            self._places.setdefault(token, []).append(place)
        longest = max_draft_len or len(source)
        copyable = [0]  # how many tokens can follow each place, from the end: up to an EOS, to before a foreign token
        for token in reversed(source):
            copyable.append(0 if token == FOREIGN else 1 if token == eos else copyable[-1] + 1)
        self._copyable = [min(tokens, longest) for tokens in reversed(copyable)]
        self._source = list(source)
        self._min_suffix, self._max_suffix = max(1, min_suffix), max_suffix or len(self._context)
        self._max_draft_len = max_draft_len
        self._persists = persists
        self._unfinished = unfinished
        self._eos = eos
        self._read = 0  # tokens of the output
        self._ends: list[_Ends] = []  # behind the last tokens that were read, the latest last

    def copy(self, output: Sequence[int]) -> tuple[list[int], Match]:
        """The draft behind an output (the start symbol first, longer than at the last call), and how it was found."""
        for token in output[self._read :]:
            self._ends = [*self._ends[-_REPLACED:], self._after(self._ends[-1] if self._ends else {}, token)]
        self._read = len(output)
        place, match = self._place(output)
        if place is None or place >= len(self._copyable):
            return [], Match.NONE
        draft = self._source[place : place + self._copyable[place]]
        return draft, match if draft else Match.NONE

    def rejoin(self, draft: Sequence[int]) -> list[int] | None:
        """Go on with the source where somebody else's draft meets it.

        Args:
            draft: tokens that are proposed behind the output that was given to `copy` last.

        Returns:
            the draft up to its first token where a suffix of output and draft (of any length, whatever `min_suffix`)
            occurs exactly once in the source, and what the source has behind that; None where there is no such token.
        """
        ends = self._ends[-1]
        for number, token in enumerate(draft, start=1):
            if token == self._eos:
                return None
            ends = self._after(ends, token)
            _, places = _longest(ends)
            if len(places) == 1 and self._copyable[places[0]] > 0:
                joined = [*draft[:number], *self._source[places[0] : places[0] + self._copyable[places[0]]]]
                return joined[: self._max_draft_len] if self._max_draft_len else joined
        return None

    def _after(self, ends: _Ends, token: int) -> _Ends:
        """c(i) behind one token more."""
        return {place: min(ends.get(place - 1, 0) + 1, self._max_suffix) for place in self._places.get(token, ())}

    def _place(self, output: Sequence[int]) -> tuple[int | None, Match]:
        """Where, in start symbol and source, that ends which the draft stands behind."""
        longest, places = _longest(self._ends[-1])
        least = min(self._min_suffix, len(output)) if self._persists else self._min_suffix
        if len(places) == 1 and longest >= least:
            return places[0], Match.by_suffix(longest if len(output) > 1 else 0)
        if not self._persists:
            return None, Match.NONE
        expected = self._expected()
        if expected is None:
            return None, Match.NONE
        if not places:
            return self._behind_a_word(output[-1], expected), Match.GUESS
        nearest = min(places, key=lambda place: abs(place - expected))
        return nearest, Match.NEAREST if len(places) > 1 else Match.GUESS  # a single place, but for too short a suffix

    def _expected(self) -> int | None:
        """Where the source goes on if the output's last tokens have replaced as many of its own."""
        for back in range(1, min(_REPLACED, len(self._ends) - 1) + 1):
            _, places = _longest(self._ends[-1 - back])
            if len(places) == 1:
                return places[0] + back
        return None

    def _behind_a_word(self, last: int, expected: int) -> int | None:
        """Where the word ends that is expected somewhere; None while the output's own word has not ended."""
        if self._unfinished is None:
            return expected
        if self._unfinished[last]:
            return None
        context = self._context
        while expected < len(context) and context[expected] >= 0 and self._unfinished[context[expected]]:
            expected += 1
        return expected


class SourceCopyDrafter(Drafter):
    """Drafts what follows, in each row's source, the place that its output has reached."""

    def __init__(self, matchers: Iterable[SourceMatcher]) -> None:
        """`matchers`: of the rows' sources."""
        self.matchers = list(matchers)

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        """See `roles.Drafter.propose`; drafts end with the first EOS."""
        return draft_of(*self.copies(outputs), outputs.device)

    def copies(self, outputs: Outputs) -> tuple[list[list[int]], list[Kind]]:
        """Each row's draft, and of which kind it is."""
        found = [matcher.copy(text) for matcher, text in zip(self.matchers, outputs.texts, strict=True)]
        return [draft for draft, _ in found], [Kind(Origin.COPY, match) for _, match in found]

    def keep(self, rows: Tensor) -> None:
        self.matchers = [self.matchers[row] for row in rows.tolist()]


def draft_of(rows: Sequence[Sequence[int]], kinds: Sequence[Kind], device: torch.device) -> Draft:
    """A draft of the tokens that each row has."""
    lengths = [len(row) for row in rows]
    width = max(lengths)
    tokens = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=torch.long, device=device)
    return Draft.of_known(tokens.view(len(rows), width), lengths, kinds)


def _longest(ends: _Ends) -> tuple[int, list[int]]:
    """The length of the longest suffix that the source has, and where it ends there."""
    longest = max(ends.values(), default=0)
    return longest, [place for place, length in ends.items() if length == longest]


def align_source(source: Tensor, pad: int, eos: int, to_target: Sequence[int] | None = None) -> list[list[int]]:
    """A padded batch of source sentences as a `SourceMatcher` takes them.

    Args:
        source: B x S, padded on either side; a `pad` between other tokens is text.
        pad: padding symbol.
        eos: end of sentence; appended where the source has none.
        to_target: V_source, the target symbol of every source symbol or `FOREIGN`; None where dictionaries are shared.

    Returns:
        the tokens of each sentence, EOS last.
    """
    sentences = []
    for symbols in source.tolist():
        first, end = 0, len(symbols)
        while end > 0 and symbols[end - 1] == pad:
            end -= 1
        while first < end and symbols[first] == pad:
            first += 1
        if first < end and symbols[end - 1] == eos:
            end -= 1
        text = symbols[first:end]
        sentences.append([*(text if to_target is None else [to_target[symbol] for symbol in text]), eos])
    return sentences
