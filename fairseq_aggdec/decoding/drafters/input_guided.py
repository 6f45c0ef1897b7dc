"""Input-guided Aggressive Decoding: the source is the draft (papers/000 §3.1, Algorithm 1; papers/002 §3.1)."""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.tokens import Draft, RowSelection, flat

FOREIGN = -1
"""stands for a source token that is not in the target's vocabulary"""
MAX_KIND = 4
"""copies after longer suffixes count as this kind"""
GUESS = MAX_KIND + 1
"""the kind of copies where no suffix is unique"""
USER_DRAFT = GUESS + 1
"""the first kind of copies from --draft-file; counted apart from those of a source"""
_START = chr(0)  # the start symbol, see `_characters`


class PromptTemplate(NamedTuple):
    """The tokens around the text in the sources and outputs of a model with a prompt."""

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
    """Finds the place in the source at which an output continues: how many source tokens are before it.

    The paper's rule (Algorithm 1, line 3): after the shortest suffix of the output that occurs exactly once in the
    source. There is one where the longest suffix that occurs does so once. Matching covers the start symbol.

    After an edit this may be long after. Our rule continues at once: after the longest suffix, where that is nearest to
    the expected place: after what was copied, and one token more if the output has another one there, a substitution.
    If no suffix occurs, that is a guess. If its first token is wrong, the next guess in the sentence is an insertion,
    which leaves out no token; if that is wrong, a substitution again.
    """

    def __init__(
        self,
        source: Sequence[int],
        eos: int,
        max_draft_len: int = 0,
        first_kind: int = 0,
        resumes: bool = True,
    ) -> None:
        """
        Args:
            source: tokens in the target's vocabulary or `FOREIGN`, EOS last; of a source or of a user's draft.
            eos: end of sentence.
            max_draft_len: L_max of papers/002 Table 3; 0: no limit.
            first_kind: the kind of a copy after the start symbol alone; the others follow.
            resumes: whether drafts continue right after an edit; False: the paper's rule alone.
        """
        # an output holds EOS only at its start, so an EOS in the source (its last token or a literal `</s>`) never
        # matches; a suffix that ends at index i stands before place i
        self._context = _START + _characters(
            [FOREIGN if token == eos else token for token in source]
        )
        # from the end: the number of tokens to copy after each place, up to EOS or a foreign token
        copyable = [0]
        for token in reversed(source):
            copyable.append(
                0 if token == FOREIGN else 1 if token == eos else copyable[-1] + 1
            )
        self.copyable = [
            min(tokens, max_draft_len or tokens) for tokens in reversed(copyable)
        ]
        """the longest draft from each place of `source`, and none after it"""
        self.source = list(source)
        self._first_kind = first_kind
        self.resumes = resumes
        self._read = 1  # output tokens read so far
        self._suffix = _START  # the longest suffix of these that occurs
        self._ends = [0]  # the first two places after it
        self._place = 0  # of the last draft
        self._is_guess = False  # whether no suffix occurred there
        self._left_out = 1  # tokens that the next edit leaves out

    def copy(
        self, output: Sequence[int], is_first: bool = False, limit: int = sys.maxsize
    ) -> tuple[list[int], int]:
        """The draft after an output, and its kind. The output begins with the start symbol and only grows.

        `is_first`: the output is the start symbol and a forced prefix; `limit`: the longest draft. The kind is
        `first_kind` and the length of the suffix, at most `MAX_KIND`; 0 for the first draft; `GUESS` if none is unique.
        """
        new, self._read = _characters(output[self._read :]), len(output)
        expected = self._expected(new)
        self._append(new)
        is_unique = len(self._ends) == 1
        kind = (
            0 if is_first else min(len(self._suffix), MAX_KIND) if is_unique else GUESS
        )
        if is_first and not is_unique:
            # a forced prefix stands for the source's beginning, as languages' tokens do; a user's draft has none
            lacks_prefix = self._first_kind == USER_DRAFT and self._suffix == ""
            self._place = 0 if lacks_prefix else min(len(output), len(self.source)) - 1
            self._suffix = ""
            self._ends = [self._place]
        elif is_unique or self.resumes:
            self._place = self._ends[0] if is_unique else self._nearest(expected)
            self._is_guess = self._suffix == ""
        else:
            return [], 0
        end = self._place + min(self.copyable[self._place], limit)
        return self.source[self._place : end], self._first_kind + kind

    def _append(self, new: str) -> None:
        """Find the longest suffix that occurs, after new tokens of the output; before them, no longer one did."""
        suffix = self._suffix + new
        ends = [
            end + len(new)
            for end in self._ends
            if self._context.startswith(new, end + 1)
        ]
        # else nothing is searched: long texts may repeat one token
        if ends == [] or len(ends) < len(self._ends):
            begin = bisect_left(
                range(len(suffix)),
                True,
                key=lambda begin: suffix[begin:] in self._context,
            )
            suffix = suffix[begin:]
            first = self._context.find(suffix)
            second = self._context.find(suffix, first + 1)
            ends = [
                begin + len(suffix) - 1
                for begin in (first, second)
                if begin >= 0 and suffix
            ]
        self._suffix = suffix
        self._ends = ends

    def _expected(self, new: str) -> int:
        """The place after new tokens of the output, of which the last one may differ from the source's."""
        following = self._context[self._place + 1 : self._place + 1 + len(new)]
        if new == following:
            return self._place + len(new)
        if self._is_guess and new[0] != following[0]:
            self._left_out = 1 - self._left_out
        return min(self._place + len(new) - 1 + self._left_out, len(self.source) - 1)

    def _nearest(self, expected: int) -> int:
        """The place after the longest suffix that is the nearest to the expected one; of two the later."""
        if self._suffix == "":
            return expected
        wanted = expected - len(self._suffix) + 1
        # then an earlier one, if it may be nearer
        later = self._context.find(self._suffix, max(0, wanted))
        least = max(0, 2 * wanted - later + 1) if later >= 0 else 0
        earlier = self._context.rfind(self._suffix, least, expected)
        return (earlier if earlier >= 0 else later) + len(self._suffix) - 1


class SourceCopyDrafter(Drafter):
    """A `roles.Drafter` that copies from each row's source, from the position that the output has reached."""

    def __init__(self, matchers: Iterable[SourceMatcher]) -> None:
        self.matchers = list(matchers)
        """of each row"""

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        rows = zip(self.matchers, outputs.texts, limits, strict=True)
        found = [
            matcher.copy(text, outputs.are_new, limit) for matcher, text, limit in rows
        ]
        lengths = [len(draft) for draft, _ in found]
        width = max(lengths)
        tokens = flat([*draft, *[0] * (width - len(draft))] for draft, _ in found).view(
            len(found), width
        )
        return Draft.of_known(tokens, lengths, [kind for _, kind in found])

    def keep(self, order: RowSelection) -> None:
        self.matchers = [self.matchers[row] for row in order.rows]


def align_source(
    source: Tensor, pad: int, eos: int, to_target: Sequence[int] | None = None
) -> list[list[int]]:
    """Convert a padded batch of source sentences into the input of `SourceMatcher`: the tokens of each, EOS last.

    Args:
        source: B x S, padded with `pad` on either side; a `pad` between other tokens is text.
        eos: end of sentence; appended where the source has none.
        to_target: V_source, the target symbol of every source symbol or `FOREIGN`; None where dictionaries are shared.
    """
    sentences = []
    for symbols in source.tolist():
        first = 0
        end = len(symbols)
        while end > 0 and symbols[end - 1] == pad:
            end -= 1
        while first < end and symbols[first] == pad:
            first += 1
        if first < end and symbols[end - 1] == eos:
            end -= 1
        text = symbols[first:end]
        sentences.append(
            [
                *(
                    text
                    if to_target is None
                    else [to_target[symbol] for symbol in text]
                ),
                eos,
            ]
        )
    return sentences


def _characters(tokens: Sequence[int]) -> str:
    """A character for each token, of at most 1,114,109: text is found in text without a loop of ours."""
    return "".join([chr(token + 2) for token in tokens])
