"""Input-guided Aggressive Decoding: the source is the draft (papers/000 §3.1, Algorithm 1; papers/002 §3.1)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.tokens import Draft, Order, flat

FOREIGN = -1
"""stands for a source token that is not in the target's vocabulary"""
MAX_KIND = 4
"""copies after longer suffixes count as this kind"""
OWN = MAX_KIND + 1
"""the first kind of copies from a draft of one's own, which pass more or less often than those from a source"""


class Form(NamedTuple):
    """The tokens around the text in a model's sources and outputs, by number."""

    before: list[int]
    """in a source"""
    after: list[int]
    """in a source; EOS is one of them, mostly the last"""
    forced: list[int]
    """the first ones of an output"""

    def as_output(self, source: list[int], eos: int) -> list[int]:
        """The output that has a source's text, of a source to which `align_source` has added a last EOS if need be."""
        end = len(source) - len(self.after) - (self.after[-1] != eos)
        return [*self.forced, *source[len(self.before) : end], eos]


class SourceMatcher:
    """Finds the position in the source that an output has reached.

    Algorithm 1, line 3 looks for the shortest suffix of the output that occurs exactly once in the source. If it is
    absent there is no match; if it is ambiguous one token more is compared. Let c(i) be the length of the longest
    suffix of the output that ends at source position i. The wanted suffix exists where c has a single maximum, and
    that position is the match. A further output token updates c(i + 1) to c(i) + 1 where the source has that token,
    and to 0 elsewhere.

    Unlike in the first implementations, matching covers the start symbol and the draft runs to EOS, so that an unedited
    sentence takes one iteration.
    """

    def __init__(
        self, source: Sequence[int], eos: int, start: int | None = None, max_draft_len: int = 0, first_kind: int = 0
    ) -> None:
        """
        Args:
            source: tokens in the target's vocabulary or `FOREIGN`, EOS last; of a source or a draft of one's own.
            eos: end of sentence.
            start: the decoder's first input, x_0 = o_0 of Algorithm 1; None for `eos`.
            max_draft_len: L_max of papers/002 Table 3; 0: no limit.
            first_kind: the kind of a copy after the start symbol alone; the others follow.
        """
        # an output holds EOS only at its start, so an EOS in the source (its last token or a literal `</s>`) never
        # matches
        self.context = [eos if start is None else start, *(FOREIGN if token == eos else token for token in source)]
        """what an output's suffixes are looked for in: its last token stands where the draft after it begins"""
        self._places: dict[int, list[int]] = {}  # positions of each token in start symbol and source
        for place, token in enumerate(self.context):
            self._places.setdefault(token, []).append(place)
        longest = max_draft_len or len(source)
        copyable = [0]  # from the end: the number of tokens to copy after each place, up to EOS or a foreign token
        for token in reversed(source):
            copyable.append(0 if token == FOREIGN else 1 if token == eos else copyable[-1] + 1)
        self.copyable = [min(tokens, longest) for tokens in reversed(copyable)]
        """the longest draft from each place of `source`, and none behind it"""
        self.source, self._first_kind = list(source), first_kind
        self._read = 0  # number of output tokens matched so far
        self._suffixes: dict[int, int] = {}  # c(i) for each place i of the last output token

    def copy(self, output: Sequence[int], is_first: bool = False) -> tuple[list[int], int]:
        """The draft after an output, and its kind. The output begins with the start symbol and only grows.

        `is_first`: the output is the start symbol and a forced prefix. The kind is `first_kind` and the length of the
        suffix found, at most `MAX_KIND`; 0 for the first draft.
        """
        for token in output[self._read :]:
            self._suffixes = {place: self._suffixes.get(place - 1, 0) + 1 for place in self._places.get(token, ())}
        self._read = len(output)
        longest = max(self._suffixes.values(), default=0)
        places = [place for place, length in self._suffixes.items() if length == longest]
        if is_first and len(places) != 1:
            # a forced prefix stands for the source's beginning, as languages' tokens do; a draft of one's own has none
            lacks_prefix = self._first_kind == OWN and not places
            places = [0 if lacks_prefix else min(len(output), len(self.source)) - 1]
            self._suffixes = {places[0]: len(output)}
        if len(places) != 1:
            return [], 0
        place = places[0]
        draft = self.source[place : place + self.copyable[place]]
        return draft, self._first_kind + (0 if is_first else min(longest, MAX_KIND))


class SourceCopyDrafter(Drafter):
    """A `roles.Drafter` that copies from each row's source, from the position that the output has reached."""

    def __init__(self, matchers: Iterable[SourceMatcher]) -> None:
        self.matchers = list(matchers)
        """of each row"""

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        found = [
            matcher.copy(text, outputs.are_new) for matcher, text in zip(self.matchers, outputs.texts, strict=True)
        ]
        lengths = [len(draft) for draft, _ in found]
        width = max(lengths)
        tokens = flat([*draft, *[0] * (width - len(draft))] for draft, _ in found).view(len(found), width)
        return Draft.of_known(tokens, lengths, [kind for _, kind in found])

    def keep(self, order: Order) -> None:
        self.matchers = [self.matchers[row] for row in order.rows]


def align_source(source: Tensor, pad: int, eos: int, to_target: Sequence[int] | None = None) -> list[list[int]]:
    """Convert a padded batch of source sentences into the input of `SourceMatcher`: the tokens of each, EOS last.

    Args:
        source: B x S, padded on either side; a `pad` between other tokens is text.
        pad: padding symbol.
        eos: end of sentence; appended where the source has none.
        to_target: V_source, the target symbol of every source symbol or `FOREIGN`; None where dictionaries are shared.
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
