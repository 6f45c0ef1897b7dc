"""fairseq's beam search for one sentence, step by step over rows that a verifier has scored.

It follows `fairseq.sequence_generator.SequenceGenerator._generate` and `fairseq.search.BeamSearch`:

    candidates   the best 2N pairs of hypothesis and next token by cumulative score; at the first step of one row
    EOS          finishes a hypothesis if it is among the best N candidates; after them it is dropped
    beam         the best N candidates that are not EOS are extended
    end          N hypotheses are finished, or some are at the longest length

Sums are rounded to single precision after each addition, as in fairseq. The best N + 1 entries of a row decide a step:
N of them are not EOS and fill the beam before any later entry. One entry more shows whether the last one is tied. The
order of equal sums is that of `torch.topk` over the whole N x V matrix, which is then built as in fairseq.

Hypotheses of score minus infinity (a forced prefix leaves a single candidate) are left out here. fairseq keeps them,
but they never finish, and all finite candidates come before their extensions.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from itertools import pairwise

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.prefix_tree import Node, Row

_ROUNDING = 1e-5
"""largest rounding error of a log-probability"""


@dataclass(frozen=True)
class BeamOptions:
    """The options of a search."""

    size: int
    """N"""
    eos: int
    max_len: int
    """the longest output, its EOS not counted"""
    vocabulary: int
    """V, more than 2N: fairseq has fewer than 2N candidates at the first step otherwise"""
    normalize: bool = True
    """divide the score of a finished hypothesis by (its length) ** `len_penalty`"""
    len_penalty: float = 1.0
    highest: float = 0.0
    """upper bound of a row's entries: 0, or the amount that a negative penalty adds to unknown words"""

    @property
    def entries(self) -> int:
        """How many of a row's best entries the search reads."""
        return self.size + 2


@dataclass(eq=False, slots=True)
class Hypothesis:
    """A prefix in the beam."""

    node: Node
    score: float
    """cumulative log-probability, in single precision"""
    before: Hypothesis | None
    """the hypothesis one token shorter"""


@dataclass(frozen=True)
class Output:
    """A finished hypothesis."""

    tokens: list[int]
    """with EOS"""
    score: float
    """normalised by length where the options ask for it"""
    log_probs: list[float]
    """the log-probability of each token: differences of cumulative scores"""


@dataclass
class BeamStats:
    """Counters of one sentence; lists have an entry for each pass."""

    positions: list[int] = field(default_factory=list)
    """scored prefixes"""
    needed: list[int] = field(default_factory=list)
    """scored prefixes that the search waited for"""
    steps: list[int] = field(default_factory=list)
    """steps of the search after the pass"""

    def add(self, positions: int, needed: int, steps: int) -> None:
        self.positions.append(positions)
        self.needed.append(needed)
        self.steps.append(steps)


Candidate = tuple[float, int, int]
"""Cumulative score, place in the beam of the hypothesis that is extended, token."""


class BeamSearch:
    """One sentence's search, between two steps."""

    def __init__(
        self,
        root: Node,
        options: BeamOptions,
        prefix: Sequence[int] = (),
        last_length: int | None = None,
    ) -> None:
        """
        Args:
            root: the prefix of the start symbol alone.
            options: the options of the search.
            prefix: the sentence's forced prefix. Rows apply it; the search reads only where it ends the sentence.
            last_length: longer outputs get the score minus infinity (fairseq's --match-source-len).
        """
        self.live = [Hypothesis(root, 0.0, None)]
        """in the order of fairseq's beam"""
        self.taken = 0
        """steps taken so far: the position of the next token"""
        self.has_ended = False
        self._options = options
        self._prefix = prefix
        self._last_length = last_length
        # hypotheses without EOS, and their scores with EOS
        self._finished: list[tuple[Hypothesis, float]] = []

    def copy(self) -> BeamSearch:
        """A copy that can run ahead of this search."""
        copy = BeamSearch.__new__(BeamSearch)
        copy.__dict__.update(self.__dict__)
        copy._finished = list(self._finished)
        return copy

    def step(self, rows: Sequence[Row | None]) -> list[int]:
        """Take a step if the known rows after the live hypotheses suffice; None stands for a missing row.

        Returns the places in the beam of hypotheses whose missing rows the step needs; none where it was taken.
        """
        missing: list[int] = []
        if None in rows:
            missing = [index for index, row in enumerate(rows) if row is None]
        if missing and len(missing) == len(rows):
            return missing
        ranked, fills_the_beam = self._ranked(rows)
        best = _rounded(ranked, fills_the_beam)
        if missing:
            # no candidate scores above the hypothesis that it extends
            if best is not None and fills_the_beam:
                least = best[-1][0] - self._options.highest - _ROUNDING
                missing = [
                    index for index in missing if self.live[index].score >= least
                ]
            if missing:
                return missing
        if best is None:
            best = self._resolved(rows, ranked, fills_the_beam)
        self._take(best)
        return []

    def step_on_guesses(self, rows: Sequence[Row | None]) -> float:
        """Take a step on guessed rows, with ties in any order; None stands for a row without candidates.

        Returns the least score of a hypothesis that affects the step.
        """
        ranked, fills_the_beam = self._ranked(rows)
        if fills_the_beam:
            ranked.pop()
        self._take(ranked)
        return ranked[-1][0] if fills_the_beam else -math.inf

    def outputs(self) -> list[Output]:
        """The finished hypotheses, best first; as in fairseq there can be fewer than N."""
        return best_first([self._output(*finished) for finished in self._finished])

    def _ranked(self, rows: Sequence[Row | None]) -> tuple[list[Candidate], bool]:
        """The best candidates of the known rows, up to the N-th that is not EOS, and one more.

        Their sums are not rounded, and finite but for the last one's. The second result: whether there are so many.
        """
        last = self._options.entries - 1
        eos = self._options.eos
        words = self._options.size
        before = [hypothesis.score for hypothesis in self.live]

        # the best remaining sum of each row, negated, with its hypothesis and its place in the row
        heads = [
            (-before[parent] - row.scores[0], parent, 0)
            for parent, row in enumerate(rows)
            if row is not None
        ]
        heapify(heads)

        # the best of all again and again
        ranked: list[Candidate] = []
        while heads:
            fallen, parent, place = heads[0]
            if fallen == math.inf and words > 0:
                break
            row = rows[parent]
            assert row is not None
            token = row.tokens[place]
            ranked.append((-fallen, parent, token))
            if words == 0:
                return ranked, True
            words -= token != eos
            if place < last:
                heapreplace(
                    heads, (-before[parent] - row.scores[place + 1], parent, place + 1)
                )
            else:
                heappop(heads)
        return ranked, False

    def _resolved(
        self, rows: Sequence[Row | None], ranked: list[Candidate], fills_the_beam: bool
    ) -> list[Candidate]:
        """The candidates where some sums are equal: fairseq's, from all rows, or as they are `ranked`."""
        whole = [
            row.whole[row.index]
            for row in rows
            if row is not None and row.whole is not None
        ]
        if len(whole) < len(self.live):
            if fills_the_beam:
                ranked.pop()
            return _in_single(ranked)
        scores = [hypothesis.score for hypothesis in self.live]
        return best_of_all(whole, scores, self.taken == 0, self._options)

    def _take(self, candidates: list[Candidate]) -> None:
        """Finish the hypotheses that EOS extends, and keep the best other candidates."""
        size = self._options.size
        eos = self._options.eos

        # EOS finishes a hypothesis only among the best N candidates, as in fairseq
        extending = []
        finishes = False
        for place, (score, parent, token) in enumerate(candidates):
            if score == -math.inf:
                break
            if token != eos:
                extending.append((score, parent, token))
            elif place < size:
                finishes = True
                if len(self._finished) < size:
                    self._finished.append((self.live[parent], score))

        # N finished hypotheses end the search only in a step that finishes one
        at_end = self.taken == self._options.max_len
        self.has_ended = (
            at_end or not extending or (finishes and len(self._finished) == size)
        )
        self.taken += 1

        # the beam after the step
        extended = []
        for score, parent, token in extending[:size]:
            before = self.live[parent]
            extended.append(Hypothesis(before.node.child(token), score, before))
        self.live = extended
        if (
            self._prefix[self.taken : self.taken + 1] == [eos]
            and self.taken < self._options.max_len
        ):
            # where the prefix ends the sentence, fairseq copies the first hypothesis
            self.live = extended[:1] * size

    def _output(self, hypothesis: Hypothesis, score: float) -> Output:
        """The output of a hypothesis extended by EOS; `score`: cumulative, EOS included."""
        tokens = [self._options.eos]
        sums = [score]
        last: Hypothesis | None = hypothesis
        while last is not None and last.before is not None:
            tokens.append(last.node.token)
            sums.append(last.score)
            last = last.before
        return output_of(tokens[::-1], sums[::-1], self._options, self._last_length)


def output_of(
    tokens: list[int],
    sums: list[float],
    options: BeamOptions,
    last_length: int | None,
) -> Output:
    """Make an output from its tokens with EOS and the cumulative log-probability of each."""
    length = len(tokens)
    score = sums[-1]
    differences = [after - before for before, after in pairwise([0.0, *sums])]
    log_probs = _single(differences)
    if options.normalize:
        [divisor] = _single([length**options.len_penalty])
        [score] = _single([score / divisor])
    if last_length is not None and length - 1 > last_length:
        score = -math.inf
    return Output(tokens, score, log_probs)


def best_first(outputs: Sequence[Output]) -> list[Output]:
    """Sort outputs by the call that fairseq makes, which is not stable for more than 16 outputs."""
    # in the default type, as in fairseq
    scores = torch.tensor([output.score for output in outputs])
    return [outputs[place] for place in torch.sort(scores, descending=True)[1].tolist()]


def best_of_all(
    rows: Sequence[Tensor],
    scores: Sequence[float],
    is_first: bool,
    options: BeamOptions,
) -> list[Candidate]:
    """The best 2N candidates of a sentence, best first, by `topk` over the same matrix as fairseq's, ties included.

    `rows`: for each of the M <= N live hypotheses, the log-probabilities of its next token, V; `scores`: M, cumulative;
    `is_first`: at the first step M is 1, and `scores` are not read.
    """
    size = options.size
    vocabulary = options.vocabulary
    matrix = torch.stack(list(rows))
    if not is_first:
        matrix += matrix.new_tensor(scores)[:, None]
        missing = size - len(rows)
        gone = matrix.new_full((missing, vocabulary), -math.inf)
        matrix = torch.cat([matrix, gone])
    best = matrix.view(1, -1).topk(2 * size)
    values = best.values[0].tolist()
    places = best.indices[0].tolist()
    return [
        (score, place // vocabulary, place % vocabulary)
        for score, place in zip(values, places, strict=True)
    ]


def _rounded(ranked: Sequence[Candidate], has_one_more: bool) -> list[Candidate] | None:
    """The candidates with rounded sums, without the additional one; None where some sums are equal."""
    best = _in_single(ranked)
    if len({score for score, _, _ in best}) < len(best):
        return None
    if has_one_more:
        best.pop()
    return best


def _in_single(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The candidates with sums in single precision."""
    sums = _single([score for score, _, _ in ranked])
    return [
        (score, parent, token)
        for score, (_, parent, token) in zip(sums, ranked, strict=True)
    ]


def _single(values: list[float]) -> list[float]:
    """Round to single precision; for a sum or quotient of two such values this equals single-precision arithmetic."""
    return array("f", values).tolist()
