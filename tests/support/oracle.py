"""What stock fairseq answers, whether ours is the same, and drafters that know the answer.

Random models accept few copies of their source, so drafts that pass are made of the right output. Some drafters propose
what should break a decoder.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import Mock

import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.heads import HeadDrafter
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.tokens import Draft, RowSelection, padded
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.samples import Batch
from fairseq_aggdec.lab.bench.oracle import (
    SimulatedModel,
    texts_to_copy,
    texts_to_propose,
)
from fairseq_aggdec.lab.verify.differences import (
    NEAR_TIE,
    Gap,
    beam_gap_of,
    differences,
    gap_of,
)

Lists = list[list[dict[str, Any]]]
"""the hypotheses of each sentence, best first, as fairseq's generators return them"""
_SCORES = 1e-4
"""absolute and relative tolerance for the log-probabilities of the same token"""
_FAR = 1 << 40


def by_fairseq(
    models: Any, words: Any, sample: Any, beam: int = 1, **options: Any
) -> Lists:
    """What stock fairseq answers; `options` are those of its generator."""
    found: Lists = SequenceGenerator(models, words, beam_size=beam, **options).generate(
        models, sample
    )
    return found


def assert_fairseqs(
    found: Lists, models: Any, words: Any, sample: dict[str, Any], beam: int = 1, near_tie: float = NEAR_TIE,
    scores: float = _SCORES, **options: Any,
) -> Lists:  # fmt: skip
    """Assert that this is what stock fairseq answers, which is returned; see `compare`."""
    stock = SequenceGenerator(models, words, beam_size=beam, **options)

    def decode(one: dict[str, Any], prefix: torch.Tensor | None) -> Lists:
        lists: Lists = stock.generate(models, one, prefix_tokens=prefix)
        return lists

    expected = decode(sample, None)
    net_input = sample["net_input"].items()
    alone = {
        row: {"net_input": {name: value[row : row + 1] for name, value in net_input}}
        for row in range(len(expected))
    }
    gap = (
        gap_of(decode, alone) if beam == 1 else beam_gap_of(decode, alone, stock.search)
    )
    compare(
        dict(enumerate(expected)),
        dict(enumerate(found)),
        gap,
        words.symbols,
        near_tie,
        scores,
    )
    return expected


def compare(
    expected: Mapping[int, list[dict[str, Any]]],
    found: Mapping[int, list[dict[str, Any]]],
    gap: Gap,
    symbols: Sequence[str],
    near_tie: float = NEAR_TIE,
    scores: float = _SCORES,
) -> int:
    """Assert that tokens and their order are equal but for near-ties, and scores of equal lists near to each other.

    Args:
        expected: fairseq's hypotheses by sentence number.
        found: ours.
        gap: see `differences`.
        symbols: of the target dictionary.
        near_tie: with 0, no difference is allowed.
        scores: absolute and relative tolerance.

    Returns:
        The number of sentences that differ at a near-tie.
    """
    differing = differences(
        tokens_by_number(expected), tokens_by_number(found), gap, near_tie
    )
    for one in differing:
        assert one.near_tie, one.describe("this", "fairseq", symbols)
    for number in expected.keys() - {one.sentence for one in differing}:
        for ours, theirs in zip(found[number], expected[number], strict=True):
            # of a beam, the sums are near to one another, and scores are their differences
            size = (
                float(theirs["positional_scores"].abs().sum()) / 10
                if len(expected[number]) > 1
                else 0.0
            )
            for name in ("positional_scores", "score"):
                near = torch.allclose(
                    ours[name],
                    theirs[name].to(ours[name]),
                    atol=scores * (1 + size),
                    rtol=scores,
                )
                assert near, (
                    f"sentence {number}: {name} {ours[name].tolist()}, fairseq {theirs[name].tolist()}"
                )
    return len(differing)


def tokens_by_number(lists: Mapping[int, list[dict[str, Any]]]) -> dict[int, list[int]]:
    """The tokens of all hypotheses of a sentence, one after the other."""
    return {
        number: [token for one in hypotheses for token in one["tokens"].tolist()]
        for number, hypotheses in lists.items()
    }


class OracleDrafter(Drafter):
    """Drafts the known output with random errors and lengths.

    The draft of a row depends only on its sentence and its length, so it is the same in every batch. Behind the length
    that a draft claims, its tokens continue with the right output: a decoder that reads too far would accept them.
    """

    def __init__(
        self,
        targets: Sequence[Sequence[int]],
        vocabulary: int,
        seed: int,
        longest: int = 12,
    ) -> None:
        """
        Args:
            targets: the right output of each row, EOS included.
            vocabulary: number of symbols; errors are drawn from all of them, special symbols too.
            seed: seed of the errors and lengths.
            longest: longest draft in tokens.
        """
        self.targets = [list(target) for target in targets]
        self.vocabulary = vocabulary
        self.seeds = [f"{seed} {target}" for target in self.targets]
        self.longest = longest

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        drafts = []
        claimed = []
        for target, seed, length in zip(
            self.targets, self.seeds, outputs.known_lengths, strict=True
        ):
            drafts.append(
                self.draft(target[length - 1 :], random.Random(f"{seed} {length}"))
            )
            claimed.append(self.claim(random.Random(f"{seed} {length} claim")))
        device = outputs.device
        tokens = torch.tensor(drafts, dtype=torch.long, device=device).view(
            len(drafts), self.longest
        )
        return Draft(tokens, claimed)

    def keep(self, order: RowSelection) -> None:
        self.targets = [self.targets[row] for row in order.rows]
        self.seeds = [self.seeds[row] for row in order.rows]

    def draft(self, rest: list[int], rng: random.Random) -> list[int]:
        """`longest` tokens, made from the rest of the right output."""
        error_rate = rng.choice((0.0, 0.0, 0.1, 0.5, 1.0))
        true = rest[: self.longest]
        true += [
            rng.randrange(self.vocabulary) for _ in range(self.longest - len(true))
        ]
        return [
            rng.randrange(self.vocabulary) if rng.random() < error_rate else token
            for token in true
        ]

    def claim(self, rng: random.Random) -> int:
        """The length that the draft claims."""
        return rng.randint(0, self.longest)


class Adversary(OracleDrafter):
    """Drafts in one of the bad ways named in `ADVERSARIES`."""

    def __init__(
        self, sort: str, eos: int, pad: int, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._draft = {
            "mostly right": super().draft,
            "always wrong": self._wrong,
            "EOS at once": lambda rest, rng: [
                eos,
                *rest,
                *self._random(self.longest, rng),
            ],
            "junk after EOS": lambda rest, rng: [
                *rest,
                *self._random(self.longest, rng),
            ],
            "padding": lambda rest, rng: [
                *rest[: rng.randint(0, 4)],
                *[pad] * self.longest,
            ],
            "foreign": self._foreign,
            "too long": lambda rest, rng: [*rest, *self._random(self.longest, rng)],
        }[sort]
        self._whole = sort != "mostly right"
        if sort == "too long":
            self.longest = 300

    def draft(self, rest: list[int], rng: random.Random) -> list[int]:
        return self._draft(rest, rng)[: self.longest]

    def claim(self, rng: random.Random) -> int:
        return self.longest if self._whole else super().claim(rng)

    def _random(self, count: int, rng: random.Random) -> list[int]:
        return [rng.randrange(self.vocabulary) for _ in range(count)]

    def _wrong(self, rest: list[int], rng: random.Random) -> list[int]:
        rest = [*rest, *self._random(self.longest, rng)]
        return [
            (token + rng.randrange(1, self.vocabulary)) % self.vocabulary
            for token in rest
        ]

    def _foreign(self, rest: list[int], rng: random.Random) -> list[int]:
        """Up to four right tokens, then numbers that are not in the dictionary."""
        outside = (-1, -2, self.vocabulary, self.vocabulary + 7, _FAR)
        return [
            *rest[: rng.randint(0, 4)],
            *(rng.choice(outside) for _ in range(self.longest)),
        ]


class OracleGenerator(AggressiveGenerator):
    """Decodes with drafts made from the known outputs."""

    def __init__(
        self,
        *args: Any,
        answers: Mapping[int, Sequence[int]],
        adversary: str = "mostly right",
        seed: int = 1,
        longest: int = 0,
        **kwargs: Any,
    ) -> None:
        """
        Args:
            args: see `AggressiveGenerator`.
            answers: the right outputs by sentence number.
            adversary: the one of `ADVERSARIES` that replaces the drafter, or `oracle`: copying modes copy from the
                edited outputs, and the drafts of a block drafter are replaced by them.
            seed: seed of the errors.
            longest: longest draft of an adversary; 0 for its default.
            kwargs: see `AggressiveGenerator`.
        """
        super().__init__(*args, **kwargs)
        self._drafts = adversary
        self._answers = answers
        self._seed = seed
        self._longest = longest

    def make_drafter(self, batch: Batch) -> Drafter:
        answers = {number: self._answers[number] for number in batch.ids()}
        if self._drafts != "oracle":
            size = {"longest": self._longest} if self._longest else {}
            return Adversary(
                self._drafts,
                self.eos,
                self.pad,
                list(answers.values()),
                self.vocab_size,
                self._seed,
                **size,
            )
        words = range(self.tgt_dict.nspecial, self.vocab_size)
        if self.mode.copies:
            texts = texts_to_copy(answers, edit_ratio=0.15, vocabulary=words)
            return super().make_drafter(
                batch._replace(
                    source=padded([*texts.values()], self.pad).to(batch.source.device)
                )
            )
        drafter: Any = super().make_drafter(batch)
        # heads draft one token less
        block_size = self.block_draft.block_size - (self.block_draft.drafter is None)
        if block_size == 0:
            return drafter
        texts = texts_to_propose(answers, 1 + 0.7 * block_size, block_size, words)
        proposed = padded([*texts.values()], self.eos)
        if isinstance(drafter, HeadDrafter):
            propose = drafter._model.propose
            model = Mock(max_positions=_FAR)
            model.draft = lambda texts, size: propose([*map(len, texts)], size + 1)
            drafter = BlockDrafter(model, block_size, self.eos)
        drafter.model = SimulatedModel(
            drafter.model, len(proposed), proposed.size(1), self.eos, batch.device
        )
        drafter.model.start(proposed)
        return drafter
