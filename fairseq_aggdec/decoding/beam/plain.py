"""fairseq's beam search of a whole batch with one pass for each step, where looking ahead does not pay.

The rules of a step are those of `search`. All sentences take a step together, over tensors of all hypotheses. The
verifier's cache is not reordered: each hypothesis has a path, the cache slots of its tokens, and every new hypothesis
takes a new slot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.loop import NotNumbersError
from fairseq_aggdec.decoding.beam.prefix_tree import Rows
from fairseq_aggdec.decoding.beam.roles import TreeBlock, TreeVerifier
from fairseq_aggdec.decoding.beam.search import (
    BeamOptions,
    BeamStats,
    Output,
    best_first,
    best_of_all,
    output_of,
)
from fairseq_aggdec.decoding.outputs import fewest_moves
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import HOST, Ragged, RowSelection
from fairseq_aggdec.process import no_garbage_collection


@dataclass
class Beams:
    """The hypotheses of B sentences, M in all, sentence by sentence, of T tokens each.

    Tensors of hypotheses may have more than M rows; rows after M are undefined.
    """

    counts: Tensor
    """B, how many hypotheses each sentence has, at most N"""
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
            counts=torch.ones_like(first_tokens),
            texts=texts,
            paths=torch.zeros_like(texts),
            sums=torch.zeros(texts.shape, dtype=torch.float),
        )

    @cached_property
    def widths(self) -> list[int]:
        """`counts` as a list."""
        return self.counts.tolist()

    @property
    def rows(self) -> list[range]:
        """The hypotheses of each sentence."""
        ends = accumulate(self.widths)
        return [
            range(end - width, end)
            for end, width in zip(ends, self.widths, strict=True)
        ]

    def block(self, size: int) -> TreeBlock:
        """The block of every hypothesis's last token; `size`: N."""
        count = sum(self.widths)
        length = self.texts.size(1)
        last = length - 1
        tokens = self.texts[:count, -1].contiguous()
        return TreeBlock(
            tokens,
            positions=torch.full_like(tokens, last),
            first_position=last,
            last_position=last,
            paths=self.paths[:count],
            end=length * size,
            ragged=Ragged.of(self.widths, HOST),
        )

    def keep(self, sentences: Sequence[int]) -> Beams:
        """The hypotheses of these sentences, in this order."""
        rows = self.rows
        kept = torch.tensor(
            [*chain.from_iterable(rows[sentence] for sentence in sentences)]
        )
        return Beams(
            self.counts[list(sentences)],
            self.texts[kept],
            self.paths[kept],
            self.sums[kept],
        )


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
    """B, how many candidates there are; -1 where equal sums leave them open"""

    def resolve_ties(
        self, beams: Beams, whole: Sequence[Rows], options: BeamOptions
    ) -> None:
        """Fill in fairseq's for sentences with open ones; `whole`: all log-probabilities, in chunks."""
        log_probs = [(chunk, row) for chunk in whole for row in range(len(chunk))]
        is_first = beams.texts.size(1) == 1
        for sentence, rows in enumerate(beams.rows):
            if self.found[sentence] >= 0:
                continue
            own = slice(rows.start, rows.stop)
            scores = [chunk[row] for chunk, row in log_probs[own]]
            best = best_of_all(scores, beams.sums[own, -1].tolist(), is_first, options)
            finite = [candidate for candidate in best if candidate[0] > -math.inf]
            self.found[sentence] = len(finite)
            for place, (score, parent, token) in enumerate(finite):
                self.sums[sentence, place] = score
                self.parents[sentence, place] = parent
                self.tokens[sentence, place] = token


Ends = list[tuple[int, int, float]]
"""Hypotheses finished by EOS, sentence by sentence, best first: of each its sentence, its row of `Beams`, and its
cumulative score with EOS."""

BeamStep = Callable[[Beams, Tensor, Tensor, Sequence[Rows]], tuple[Beams, Ends]]
"""Takes a step of the search for all sentences; returns the new hypotheses, and the finished ones.

Its arguments: the hypotheses; the best log-probabilities after each, in descending order, and their tokens, M x E,
E = N + 2; all log-probabilities, in chunks, to resolve ties as fairseq does. Without these equal sums keep their
order."""


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
    last_lengths = rules.last_lengths(len(found))
    active = list(range(len(found)))  # places of the active sentences in the batch
    beams = Beams.start(first_tokens)
    for taken in range(options.max_len + 1):
        # score the last tokens of all hypotheses
        for index, width in zip(active, beams.widths, strict=True):
            stats[index].add(width, width, 1)
        block = beams.block(options.size)
        texts = beams.texts[: block.tokens.size(0)] if rules.read_output else None
        chunks = list(verifier.verify_tree(block, rules, options.entries, texts))
        values, names, _ = chunks[0]
        if len(chunks) > 1:
            values = torch.cat([chunk.values for chunk in chunks])
            names = torch.cat([chunk.names for chunk in chunks])
        if math.isnan(values[:, 0].sum()):
            raise NotNumbersError

        # take a step; a sentence has ended with N outputs
        before = beams
        whole = [chunk.whole for chunk in chunks if chunk.whole is not None]
        beams, ends = step(before, values, names, whole)
        for place, row, score in ends:
            index = active[place]
            outputs = found[index]
            if len(outputs) < options.size:
                tokens = before.texts.numpy()[row, 1:].tolist()
                sums = before.sums.numpy()[row, 1:].tolist()
                last_length = last_lengths[index]
                outputs.append(
                    output_of(
                        [*tokens, options.eos], [*sums, score], options, last_length
                    )
                )
        staying = [
            place
            for place, (index, width) in enumerate(
                zip(active, beams.widths, strict=True)
            )
            if width and len(found[index]) < options.size
        ]
        if not staying or taken == options.max_len:
            break
        if len(staying) < len(active):  # finished sentences leave the batch
            remaining = RowSelection(fewest_moves(staying), device)
            rules = rules.keep(remaining)
            verifier.keep(remaining)
            beams = beams.keep(remaining.rows)
            active = [active[place] for place in remaining.rows]
    return [
        (best_first(outputs), counts)
        for outputs, counts in zip(found, stats, strict=True)
    ]
