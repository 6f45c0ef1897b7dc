"""Input-guided Aggressive Decoding: the source is the draft (papers/000 §3.1, Algorithm 1; papers/002 §3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter

FOREIGN = -1
"""A source token that no output token equals."""
LONGEST_KIND = 4
"""copies behind longer suffixes are about equally good"""


class SourceMatcher:
    """Finds, in one source, the place that an output has reached.

    Algorithm 1, line 3 looks for the shortest suffix of the output that occurs exactly once in the source: absent means
    no match, ambiguous means one token longer. With c(i) the length of the longest suffix of the output that ends at
    source position i, such a suffix exists exactly where c has a single maximum, and that position is the match. A
    token more of the output makes c(i + 1) of c(i) where the source has that token, and 0 elsewhere.

    Unlike the first implementations, matching covers the start symbol and the draft runs to EOS, so that an unedited
    sentence takes one iteration.
    """

    def __init__(self, source: Sequence[int], eos: int, start: int | None = None, max_draft_len: int = 0) -> None:
        """Copy from `source`: tokens in the target's vocabulary, EOS last; `FOREIGN` where there is none.

        `start` is the decoder's first input, x_0 = o_0 of Algorithm 1, None for `eos`; `max_draft_len` is L_max of
        papers/002 Table 3, 0 for any.
        """
        # An output holds EOS nowhere but at its start, so one inside the source, its last or a literal `</s>`, is no
        # context: with x_0 in front this needs no special case.
        context = [eos if start is None else start, *(FOREIGN if token == eos else token for token in source)]
        self._places: dict[int, list[int]] = {}  # of each token, where it stands in start symbol and source
        for place, token in enumerate(context):
            self._places.setdefault(token, []).append(place)
        longest = max_draft_len or len(source)
        copyable = [0]  # how many tokens can follow each place, from the end: up to an EOS, to before a foreign token
        for token in reversed(source):
            copyable.append(0 if token == FOREIGN else 1 if token == eos else copyable[-1] + 1)
        self._copyable = [min(tokens, longest) for tokens in reversed(copyable)]
        self._source = list(source)
        self._read = 0  # tokens of the output
        self._suffixes: dict[int, int] = {}  # c(i) of each place i where the last token stands

    def copy(self, output: Sequence[int]) -> tuple[list[int], int]:
        """The draft behind an output (the start symbol first, longer than at the last call), and its kind.

        The kind is the length of the suffix that was found, at most `LONGEST_KIND`; 0 for the start symbol alone.
        """
        for token in output[self._read :]:
            self._suffixes = {place: self._suffixes.get(place - 1, 0) + 1 for place in self._places.get(token, ())}
        self._read = len(output)
        longest = max(self._suffixes.values(), default=0)
        places = [place for place, length in self._suffixes.items() if length == longest]
        if len(places) != 1:
            return [], 0
        place = places[0]
        draft = self._source[place : place + self._copyable[place]]
        return draft, min(longest, LONGEST_KIND) if len(output) > 1 else 0


class SourceCopyDrafter(Drafter):
    """Drafts what follows, in each row's source, the place that its output has reached."""

    def __init__(self, matchers: Iterable[SourceMatcher]) -> None:
        """`matchers`: of the rows' sources."""
        self._matchers = list(matchers)

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        """See `roles.Drafter.propose`; drafts end with the first EOS."""
        found = [matcher.copy(text) for matcher, text in zip(self._matchers, outputs.texts, strict=True)]
        lengths = [len(draft) for draft, _ in found]
        width = max(lengths)
        padded = [[*draft, *[0] * (width - len(draft))] for draft, _ in found]
        tokens = torch.tensor(padded, dtype=torch.long, device=outputs.device).view(len(found), width)
        return Draft.of_known(tokens, lengths, [kind for _, kind in found])

    def keep(self, rows: Tensor) -> None:
        self._matchers = [self._matchers[row] for row in rows.tolist()]


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
