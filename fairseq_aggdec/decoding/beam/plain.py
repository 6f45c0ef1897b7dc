"""fairseq's beam search of a whole batch, a step a pass: where looking ahead does not pay.

It is the search of `search`, which says what decides a step. All sentences take it together, over tensors that hold the
hypotheses of a batch. The verifier's cache is not reordered: a hypothesis has a path, the slots that its tokens were
read into, and every new one has a slot of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import TreeBlock, TreeVerifier, best_entries_behind
from fairseq_aggdec.decoding.beam.search import BeamOptions, BeamStats, Output, best_first, best_of_all, output_of
from fairseq_aggdec.decoding.outputs import moving_few
from fairseq_aggdec.decoding.roles import Ragged
from fairseq_aggdec.decoding.search_rules import LogProbs, SearchRules


@dataclass
class Beams:
    """The hypotheses of B sentences, M in all, sentence by sentence, of T tokens each."""

    counts: Tensor
    """B, how many each sentence has, at most N"""
    texts: Tensor
    """M x T, and rows that are none: what the decoder has read, and the token that it reads next"""
    paths: Tensor
    """as `texts`: the slots of the sentence's cache that have these tokens"""
    sums: Tensor
    """as `texts`: cumulative log-probabilities"""

    @classmethod
    def begun(cls, first_tokens: Tensor) -> Beams:
        """A hypothesis for each sentence, the decoder's first input, B."""
        texts = first_tokens[:, None].clone()
        return cls(
            torch.ones_like(first_tokens), texts, torch.zeros_like(texts), torch.zeros(texts.shape, dtype=torch.float)
        )

    def block(self, widths: Sequence[int], size: int) -> TreeBlock:
        """What reads every hypothesis's last token; `widths`: `counts`, as the host knows them; `size`: N."""
        rows, length = sum(widths), self.texts.size(1)
        tokens = self.texts[:rows, -1].contiguous()
        positions, ragged = torch.full_like(tokens, length - 1), Ragged.of(widths, tokens.device)
        return TreeBlock(tokens, positions, length - 1, self.paths[:rows], length * size, ragged)

    def keep(self, sentences: Sequence[int], widths: Sequence[int]) -> Beams:
        """Those of some sentences, in this order; `widths` as in `block`."""
        firsts = [0, *accumulate(widths)]
        rows = torch.tensor([firsts[sentence] + own for sentence in sentences for own in range(widths[sentence])])
        return Beams(self.counts[list(sentences)], self.texts[rows], self.paths[rows], self.sums[rows])


@dataclass(frozen=True)
class Candidates:
    """The best ways on of each sentence, falling: up to the N-th that is not EOS."""

    sums: Tensor
    """B x 2N, cumulative"""
    parents: Tensor
    """B x 2N, the hypotheses that they follow, counted from a sentence's first one"""
    tokens: Tensor
    """B x 2N"""
    found: Tensor
    """B, how many; minus one where equal sums leave open which"""


Ends = tuple[int, int, float]
"""Sentence, row of `Beams` and cumulative score of what EOS finishes."""


class BeamStep(Protocol):
    """A step of the search, of all sentences."""

    def take(
        self, beams: Beams, values: Tensor, names: Tensor, settle: Callable[[Candidates], None]
    ) -> tuple[Beams, list[Ends]]:
        """The hypotheses after a step, and what finishes, sentence by sentence, best first.

        Args:
            beams: before the step.
            values: M x E, the best log-probabilities behind each hypothesis, falling; E = N + 2.
            names: M x E, whose they are.
            settle: is called where candidates are open, and puts fairseq's in their place.
        """


def plain_beam_search(
    verifier: TreeVerifier, rules: SearchRules, options: BeamOptions, first_tokens: Tensor, step: BeamStep
) -> list[tuple[list[Output], BeamStats]]:
    """Search a batch on a CPU, by rules without a forced prefix; see `loop.aggressive_beam_search`."""
    found: list[list[Output]] = [[] for _ in first_tokens]
    stats = [BeamStats() for _ in found]
    last_lengths: list[int | None] = [None] * len(found)
    if rules.source_lengths is not None:
        last_lengths = rules.source_lengths.tolist()
    going, widths = list(range(len(found))), [1] * len(found)  # sentences by number, and how many hypotheses each has
    beams = Beams.begun(first_tokens)
    for taken in range(options.max_len + 1):
        values, names, whole = _best_entries(verifier, rules, options, beams, widths)
        for number, width in zip(going, widths, strict=True):
            stats[number].add(width, width, 1)
        before = beams
        beams, ends = step.take(before, values, names, partial(_settle, before, widths, whole, options))
        full = set()
        for place, row, score in ends:
            number = going[place]
            if len(found[number]) < options.size:
                tokens, sums = before.texts[row, 1:].tolist(), before.sums[row, 1:].tolist()
                last = last_lengths[number]
                found[number].append(output_of([*tokens, options.eos], [*sums, score], options, last))
            if len(found[number]) == options.size:
                full.add(place)
        widths = beams.counts.tolist()
        staying = moving_few([place for place, width in enumerate(widths) if width and place not in full])
        if not staying or taken == options.max_len:
            break
        if len(staying) < len(going):  # finished sentences leave the batch
            remaining = torch.tensor(staying)
            rules = rules.keep(remaining)
            verifier.keep(remaining)
            beams = beams.keep(staying, widths)
            going, widths = [going[place] for place in staying], [widths[place] for place in staying]
    return [(best_first(outputs), own) for outputs, own in zip(found, stats, strict=True)]


def _best_entries(
    verifier: TreeVerifier, rules: SearchRules, options: BeamOptions, beams: Beams, widths: Sequence[int]
) -> tuple[Tensor, Tensor, list[LogProbs | Tensor]]:
    """Behind each hypothesis the best log-probabilities and their tokens, twice M x E; and all of them, in pieces."""
    block = beams.block(widths, options.size)
    texts = beams.texts[: sum(widths)] if rules.no_repeat_ngram_size > 1 else None
    pieces = best_entries_behind(verifier, rules, options, block, block.last_position, texts)
    values, names, whole = map(list, zip(*pieces, strict=True))
    if len(whole) == 1:
        return values[0], names[0], whole
    return torch.cat(values), torch.cat(names), whole


def _settle(
    beams: Beams,
    widths: Sequence[int],
    whole: Sequence[LogProbs | Tensor],
    options: BeamOptions,
    candidates: Candidates,
) -> None:
    """Of sentences whose candidates are open, take fairseq's; `whole`: all log-probabilities, in pieces."""
    rows = [(piece, row) for piece in whole for row in range(len(piece))]
    for sentence, (end, width) in enumerate(zip(accumulate(widths), widths, strict=True)):
        if candidates.found[sentence] >= 0:
            continue
        own = slice(end - width, end)
        log_probs = [piece[row] for piece, row in rows[own]]
        best = best_of_all(log_probs, beams.sums[own, -1].tolist(), beams.texts.size(1) == 1, options)
        finite = [candidate for candidate in best if candidate[0] > -math.inf]
        candidates.found[sentence] = len(finite)
        for place, (score, parent, token) in enumerate(finite):
            candidates.sums[sentence, place] = score
            candidates.parents[sentence, place], candidates.tokens[sentence, place] = parent, token
