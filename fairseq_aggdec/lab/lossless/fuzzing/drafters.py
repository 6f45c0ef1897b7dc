"""Drafters that know the answer, and use it against whoever trusts them."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter, DraftSchedule
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.lab.benchmarking.oracle import Oracle, OracleBlockDrafter, padded

_FAR = 1 << 40


class OracleDrafter(Drafter):
    """Drafts the known answer with random errors, lengths and ends.

    What a row drafts depends on its sentence and its length alone, so that a batch and its sentences one by one meet
    the same drafts. Behind a draft's claimed length stands what would be right, to tempt whoever reads too far.
    """

    def __init__(self, targets: Sequence[Sequence[int]], vocabulary: int, seed: int, longest: int = 12) -> None:
        """
        Args:
            targets: the answer of each row, its EOS included.
            vocabulary: errors are drawn from all of it, special symbols too.
            seed: of the drafts.
            longest: longest draft.
        """
        self.targets = [list(target) for target in targets]
        self.vocabulary = vocabulary
        self.seeds = [f"{seed} {target}" for target in self.targets]
        self.longest = longest

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        assert outputs.known_lengths == outputs.lengths.tolist()
        drafts, claimed = [], []
        for target, seed, length in zip(self.targets, self.seeds, outputs.known_lengths, strict=True):
            drafts.append(self.draft(target[length - 1 :], random.Random(f"{seed} {length}")))
            claimed.append(self.claim(random.Random(f"{seed} {length} claim")))
        device = outputs.tokens.device
        tokens = torch.tensor(drafts, dtype=torch.long, device=device).view(len(drafts), self.longest)
        return Draft(tokens, torch.tensor(claimed, device=device), claimed)

    def keep(self, rows: Tensor) -> None:
        self.targets = [self.targets[row] for row in rows.tolist()]
        self.seeds = [self.seeds[row] for row in rows.tolist()]

    def draft(self, rest: list[int], rng: random.Random) -> list[int]:
        """`longest` tokens in place of the rest of an answer."""
        error_rate = rng.choice((0.0, 0.0, 0.1, 0.5, 1.0))
        true = rest[: self.longest]
        true += [rng.randrange(self.vocabulary) for _ in range(self.longest - len(true))]
        return [rng.randrange(self.vocabulary) if rng.random() < error_rate else token for token in true]

    def claim(self, rng: random.Random) -> int:
        """How many of them are called a draft."""
        return rng.randint(0, self.longest)


class Adversary(OracleDrafter):
    """Drafts what no drafter should; each sort is a name in `ADVERSARIES`."""

    def __init__(self, sort: str, eos: int, pad: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._draft = {
            "mostly right": super().draft,
            "always wrong": self._wrong,
            "EOS at once": lambda rest, rng: [eos, *rest, *self._random(self.longest, rng)],
            "junk behind EOS": lambda rest, rng: [*rest, *self._random(self.longest, rng)],
            "padding": lambda rest, rng: [*rest[: rng.randint(0, 4)], *[pad] * self.longest],
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
        return [(token + rng.randrange(1, self.vocabulary)) % self.vocabulary for token in rest]

    def _foreign(self, rest: list[int], rng: random.Random) -> list[int]:
        """Right at first; then tokens that no dictionary has."""
        outside = (-1, -2, self.vocabulary, self.vocabulary + 7, _FAR)
        return [*rest[: rng.randint(0, 4)], *(rng.choice(outside) for _ in range(self.longest))]


class FuzzedGenerator(AggressiveGenerator):
    """Decodes with drafts that are made of the known answers."""

    def __init__(
        self, *args: Any, drafts: str, answers: Mapping[int, Sequence[int]], seed: int, block_size: int, **kwargs: Any
    ) -> None:
        """
        Args:
            args: see `AggressiveGenerator`.
            drafts: `oracle`: the mode's own drafter copies from edited answers, or runs and has its proposals replaced
                by them; or an adversary in its place.
            answers: by the numbers of sentences.
            seed: of errors.
            block_size: of an adversary; 0 for the default length.
            kwargs: see `AggressiveGenerator`.
        """
        super().__init__(*args, **kwargs)
        self._drafts, self._answers, self._seed, self._longest = drafts, answers, seed, block_size
        self._numbers: list[int] = []

    def _generate(self, sample: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        self._numbers = sample["id"].tolist()
        return super()._generate(sample, *args, **kwargs)

    def make_drafter(
        self, net_input: dict[str, Any], start: int, encoder_outs: list[dict[str, Any]], schedule: DraftSchedule
    ) -> Drafter:
        answers = {number: self._answers[number] for number in self._numbers}
        if self._drafts != "oracle":
            size = {"longest": self._longest} if self._longest else {}
            return Adversary(
                self._drafts, self.eos, self.pad, list(answers.values()), self.vocab_size, self._seed, **size
            )
        words = range(self.tgt_dict.nspecial, self.vocab_size)
        if self.decoding in ("iad", "hybrid"):
            texts = Oracle.to_copy_from(answers, edit_ratio=0.15, vocabulary=words).texts
            copied = padded([texts[number] for number in self._numbers], self.pad, net_input["src_tokens"].device)
            return super().make_drafter({**net_input, "src_tokens": copied}, start, encoder_outs, schedule)
        drafter = super().make_drafter(net_input, start, encoder_outs, schedule)
        assert self.block_draft is not None
        block_size = self.block_draft.block_size - (self.block_draft.drafter is None)  # heads draft one token less
        if block_size == 0:
            return drafter
        texts = Oracle.to_propose(answers, 1 + 0.7 * block_size, block_size, words).texts
        proposed = padded([texts[number] for number in self._numbers], self.eos, net_input["src_tokens"].device)
        # behind the longest answer, a drafter that was right so far may still be asked, in vain
        return OracleBlockDrafter(drafter, block_size, proposed, self.eos)
