"""fairseq's beam search of a whole batch with one pass for each step, where looking ahead does not pay.

The rules of a step are those of `search`. All sentences take a step together, over tensors of all hypotheses. The
verifier's cache is not reordered: each hypothesis has a path, the cache slots of its tokens, and every new hypothesis
takes a slot of its own.
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

from fairseq_aggdec.decoding.beam.loop import NotNumbersError
from fairseq_aggdec.decoding.beam.prefix_tree import Rows
from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock, TreeVerifier
from fairseq_aggdec.decoding.beam.search import BeamOptions, BeamStats, Output, best_first, best_of_all, output_of
from fairseq_aggdec.decoding.outputs import fewest_moves
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import HOST, Order, Ragged
from fairseq_aggdec.process import no_garbage_collection


@dataclass
class Beams:
    """The hypotheses of B sentences, M in all, sentence by sentence, of T tokens each.

    Tensors of hypotheses may have more than M rows; rows after M are undefined.
    """

    counts: Tensor
    """B, the number of hypotheses of each sentence, at most N"""
    texts: Tensor
    """M x T: the tokens that the decoder has read, then the token that it reads next"""
    paths: Tensor
    """M x T: the cache slots of these tokens"""
    sums: Tensor
    """M x T: cumulative log-probabilities"""

    @classmethod
    def start(cls, first_tokens: Tensor) -> Beams:
        """One hypothesis for each sentence: the decoder's first input, B."""
        texts = first_tokens[:, None].clone()
        return cls(
            torch.ones_like(first_tokens), texts, torch.zeros_like(texts), torch.zeros(texts.shape, dtype=torch.float)
        )

    def block(self, widths: Sequence[int], size: int) -> TreeBlock:
        """The block of every hypothesis's last token; `widths`: `counts` on the host; `size`: N."""
        rows, length = sum(widths), self.texts.size(1)
        tokens = self.texts[:rows, -1].contiguous()
        positions, ragged = torch.full_like(tokens, length - 1), Ragged.of(widths, tokens.device)
        return TreeBlock(tokens, positions, length - 1, length - 1, self.paths[:rows], length * size, ragged)

    def keep(self, sentences: Sequence[int], widths: Sequence[int]) -> Beams:
        """The hypotheses of these sentences, in this order; `widths` as in `block`."""
        firsts = [0, *accumulate(widths)]
        rows = torch.tensor([firsts[sentence] + own for sentence in sentences for own in range(widths[sentence])])
        return Beams(self.counts[list(sentences)], self.texts[rows], self.paths[rows], self.sums[rows])


@dataclass(frozen=True)
class Candidates:
    """The best candidates of each sentence, in descending order, up to the N-th that is not EOS."""

    sums: Tensor
    """B x 2N, cumulative"""
    parents: Tensor
    """B x 2N, the hypotheses that they extend, counted from a sentence's first one"""
    tokens: Tensor
    """B x 2N"""
    found: Tensor
    """B, the number of candidates; -1 where equal sums leave them open"""


Ends = tuple[int, int, float]
"""A hypothesis finished by EOS: its sentence, its row of `Beams`, and its cumulative score with EOS."""


class BeamStep(Protocol):
    """A step of the search for all sentences."""

    def take(
        self, beams: Beams, values: Tensor, names: Tensor, resolve_ties: Callable[[Candidates], None] | None
    ) -> tuple[Beams, list[Ends]]:
        """Take a step; return the new hypotheses, and the finished ones sentence by sentence, best first.

        `values` and `names`: the best log-probabilities after each hypothesis, in descending order, and their tokens,
        M x E, E = N + 2. `resolve_ties` is called where candidates are open, to fill in fairseq's; None: equal sums
        keep their order.
        """


@no_garbage_collection()
def plain_beam_search(
    verifier: TreeVerifier,
    rules: SearchRules,
    options: BeamOptions,
    first_tokens: Tensor,
    step: BeamStep,
    device: torch.device = HOST,
) -> list[tuple[list[Output], BeamStats]]:
    """Search a batch where a forced prefix, if any, ends no sentence; see `loop.aggressive_beam_search`."""
    found: list[list[Output]] = [[] for _ in range(first_tokens.size(0))]
    stats = [BeamStats() for _ in found]
    last_lengths: list[int | None] = [None] * len(found)
    if rules.source_lengths is not None:
        last_lengths = rules.source_lengths.tolist()
    going, widths = list(range(len(found))), [1] * len(found)  # sentence numbers, and their numbers of hypotheses
    beams = Beams.start(first_tokens)
    for taken in range(options.max_len + 1):
        values, names, whole = _best_entries(verifier, rules, options, beams, widths)
        for number, width in zip(going, widths, strict=True):
            stats[number].add(width, width, 1)
        before = beams
        resolve_ties = None if whole is None else partial(_resolve_ties, before, widths, whole, options)
        beams, ends = step.take(before, values, names, resolve_ties)
        full = set()
        for place, row, score in ends:
            number = going[place]
            if len(found[number]) < options.size:
                tokens, sums = before.texts.numpy()[row, 1:].tolist(), before.sums.numpy()[row, 1:].tolist()
                last = last_lengths[number]
                found[number].append(output_of([*tokens, options.eos], [*sums, score], options, last))
            if len(found[number]) == options.size:
                full.add(place)
        widths = beams.counts.tolist()
        staying = fewest_moves([place for place, width in enumerate(widths) if width and place not in full])
        if not staying or taken == options.max_len:
            break
        if len(staying) < len(going):  # finished sentences leave the batch
            remaining = Order(staying, device)
            rules = rules.keep(remaining)
            verifier.keep(remaining)
            beams = beams.keep(staying, widths)
            going, widths = [going[place] for place in staying], [widths[place] for place in staying]
    return [(best_first(outputs), own) for outputs, own in zip(found, stats, strict=True)]


def _best_entries(
    verifier: TreeVerifier, rules: SearchRules, options: BeamOptions, beams: Beams, widths: Sequence[int]
) -> tuple[Tensor, Tensor, list[Rows] | None]:
    """The best log-probabilities after each hypothesis and their tokens, twice M x E, and all, in chunks.

    Raises `NotNumbersError`.
    """
    block = beams.block(widths, options.size)
    texts = beams.texts[: sum(widths)] if rules.read_output else None
    chunks: list[Entries] = list(verifier.verify_tree(block, rules, options.entries, texts))
    best, tokens = (torch.cat(parts) if len(chunks) > 1 else parts[0] for parts in list(zip(*chunks, strict=True))[:2])
    if math.isnan(best[:, 0].sum()):
        raise NotNumbersError
    whole = [chunk.whole for chunk in chunks if chunk.whole is not None]
    return best, tokens, whole or None


def _resolve_ties(
    beams: Beams,
    widths: Sequence[int],
    whole: Sequence[Rows],
    options: BeamOptions,
    candidates: Candidates,
) -> None:
    """Fill in fairseq's candidates for sentences with open ones; `whole`: all log-probabilities, in chunks."""
    rows = [(chunk, row) for chunk in whole for row in range(len(chunk))]
    for sentence, (end, width) in enumerate(zip(accumulate(widths), widths, strict=True)):
        if candidates.found[sentence] >= 0:
            continue
        own = slice(end - width, end)
        log_probs = [chunk[row] for chunk, row in rows[own]]
        best = best_of_all(log_probs, beams.sums[own, -1].tolist(), beams.texts.size(1) == 1, options)
        finite = [candidate for candidate in best if candidate[0] > -math.inf]
        candidates.found[sentence] = len(finite)
        for place, (score, parent, token) in enumerate(finite):
            candidates.sums[sentence, place] = score
            candidates.parents[sentence, place], candidates.tokens[sentence, place] = parent, token
