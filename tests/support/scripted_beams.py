"""Rows by a table, the same for fairseq's own search and for ours to the last bit: ties are meant, and must agree."""

import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn

from fairseq_aggdec.decoding.beam.look_ahead import look_ahead
from fairseq_aggdec.decoding.beam.loop import aggressive_beam_search
from fairseq_aggdec.decoding.beam.plain import plain_beam_search
from fairseq_aggdec.decoding.beam.prefix_tree import Node
from fairseq_aggdec.decoding.beam.roles import (
    Entries,
    Plan,
    Sentence,
    TreeBlock,
    TreeVerifier,
)
from fairseq_aggdec.decoding.beam.search import BeamOptions
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import RowSelection
from fairseq_aggdec.engine.native.beam_step import beam_step
from fairseq_aggdec.engine.plain.choice import PLAIN, entries_behind

Outputs = list[tuple[list[int], float, list[float]]]
"""Of a sentence, best first: tokens, score, log-probabilities."""


@dataclass(frozen=True)
class Table:
    """Logits of every prefix, drawn at random."""

    words: Dictionary
    seed: int
    context: int
    """how many of a prefix's last tokens count: 0 makes all rows equal"""
    levels: int
    """how many different logits there are: few make ties"""
    end: float = 0.0
    """added to EOS"""

    def logits(self, sentence: int, prefix: Sequence[int]) -> Tensor:
        """V, for a sentence and what the decoder has read."""
        logits = _drawn(
            f"{self.seed} {sentence} {list(prefix)[len(prefix) - self.context :]}",
            self.levels,
            len(self.words),
        )
        logits = logits * (6.0 / self.levels)
        logits[self.words.eos()] += self.end
        return logits


@functools.lru_cache(maxsize=10_000)
def _drawn(key: str, levels: int, size: int) -> Tensor:
    """So many numbers below `levels`; who searches after fairseq asks for the same ones again."""
    generator = torch.Generator().manual_seed(random.Random(key).getrandbits(40))
    return torch.randint(0, levels, (size,), generator=generator)


class TableModel(nn.Module):
    """What fairseq's generator needs of a model."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.encoder = SimpleNamespace(
            forward_torchscript=lambda net_input: net_input["src_tokens"][:, :1],
            reorder_encoder_out=lambda sentences, order: sentences[order],
        )
        self.decoder = TableDecoder(table)

    def max_decoder_positions(self) -> int:
        return 60

    def get_normalized_probs(
        self, decoder_out: Any, log_probs: bool, sample: Any
    ) -> Tensor:
        return decoder_out[0].log_softmax(dim=-1)


class TableDecoder(FairseqIncrementalDecoder):
    def __init__(self, table: Table) -> None:
        super().__init__(table.words)
        self.table = table

    def forward(
        self, tokens: Tensor, encoder_out: Tensor, incremental_state: Any = None
    ) -> Any:
        sentences = encoder_out[:, 0].tolist()
        rows = [
            self.table.logits(*row)
            for row in zip(sentences, tokens.tolist(), strict=True)
        ]
        return torch.stack(rows)[:, None], None


class TableVerifier(TreeVerifier):
    """Reads prefixes by what the block says that its tokens see; slots that nobody wrote are an error."""

    def __init__(
        self,
        table: Table,
        sentences: list[int],
        piece: int = 1000,
        temperature: float = 1.0,
    ) -> None:
        """`piece`: number of rows of a chunk."""
        self.table = table
        self.temperature = temperature
        self.sentences = sentences
        # position and token by slot
        self.read: list[dict[int, tuple[int, int]]] = [{} for _ in sentences]
        self.piece = piece
        self.sizes: list[list[int]] = []
        """of each pass, how many tokens of each sentence it has read"""
        self.slots = 0
        """every slot that was written is below"""

    def verify_tree(
        self,
        block: TreeBlock,
        rules: SearchRules,
        count: int,
        sequences: Tensor | None = None,
    ) -> Iterator[Entries]:
        return entries_behind(
            self.score_tree(block), PLAIN, block, rules, count, sequences
        )

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        rows = block.ragged.rows.tolist()
        own = list(
            zip(
                rows,
                block.paths.tolist(),
                block.positions.tolist(),
                block.tokens.tolist(),
                strict=True,
            )
        )
        for row, path, position, token in own:
            self.read[row][path[position]] = position, token
        assert int(block.paths.max()) < block.end
        assert (block.first_position, block.last_position) == block.positions.aminmax()
        self.slots = max(self.slots, 1 + int(block.paths.max()))
        logits = []
        for row, path, position, _ in own:
            assert set(path[position:]) == {path[position]}
            seen = [self.read[row][slot] for slot in path[: position + 1]]
            assert [place for place, _ in seen] == list(range(position + 1)), (
                "a prefix has each position once"
            )
            logits.append(
                self.table.logits(self.sentences[row], [token for _, token in seen])
            )
        self.sizes.append([rows.count(row) for row in range(len(self.sentences))])
        yield from (torch.stack(logits) / self.temperature).split(self.piece)

    def keep(self, order: RowSelection) -> None:
        self.sentences = [self.sentences[row] for row in order.rows]
        self.read = [self.read[row] for row in order.rows]


class WildPlan:
    """Any prefixes in any order: likely, unlikely and impossible ones, dead branches, some of them twice."""

    def __init__(self, seed: int, vocabulary: int) -> None:
        self.rng = random.Random(seed)
        self.vocabulary = vocabulary

    def __call__(self, sentence: Sentence) -> list[Node]:
        live = [hypothesis.node for hypothesis in sentence.search.live]
        wanted: list[Node] = []
        for _ in range(self.rng.choice([0, 1, 5, 20])):
            node = self.rng.choice([sentence.tree.root, *sentence.needed, *live])
            for _ in range(self.rng.choice([0, 1, 1, 2, 3, 70])):
                if node.row is not None and self.rng.random() < 0.8:
                    token = self.rng.choice(node.row.tokens[:3])
                else:
                    token = self.rng.choice(
                        [self.rng.randrange(self.vocabulary), -1, self.vocabulary]
                    )
                node = node.child(token)
            wanted += [node] * self.rng.choice([1, 2])
        self.rng.shuffle(wanted)
        return wanted


def ahead(prefixes: int, sources: Sequence[Sequence[int]] = ()) -> Plan:
    """Look ahead by so many prefixes, with copies of these sources."""
    return partial(look_ahead, sources=sources, prefixes=prefixes)


def by_fairseq(
    table: Table,
    sentences: list[int],
    size: int,
    prefix: Tensor | None = None,
    **options: Any,
) -> list[Outputs]:
    """The n-best lists of fairseq's own search."""
    sources = torch.tensor([[sentence, table.words.eos()] for sentence in sentences])
    lengths = options.pop("source_lengths", torch.full((len(sentences),), 2))
    sample = {"net_input": {"src_tokens": sources, "src_lengths": lengths}}
    generator = SequenceGenerator(
        [TableModel(table)], table.words, beam_size=size, **options
    )
    return [
        [
            (
                one["tokens"].tolist(),
                float(one["score"]),
                one["positional_scores"].tolist(),
            )
            for one in sentence
        ]
        for sentence in generator.generate([], sample, prefix_tokens=prefix)
    ]


def by_us(
    verifier: TableVerifier,
    rules: SearchRules,
    options: BeamOptions,
    plan: Plan | None = None,
) -> list[Outputs]:
    """The n-best lists of `aggressive_beam_search`; without a plan, of `plain_beam_search` where it can do this."""
    first = torch.full((len(verifier.sentences),), rules.eos)
    step = beam_step(len(first), options)
    if plan is None and step is not None and rules.prefix is None:
        found = plain_beam_search(verifier, rules, options, first, step)
    else:
        found = aggressive_beam_search(
            verifier, rules, options, first, plan or ahead(0)
        )
    return [
        [(one.tokens, one.score, one.log_probs) for one in outputs]
        for outputs, _ in found
    ]
