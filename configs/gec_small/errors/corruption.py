"""Synthetic grammatical errors: clean English sentences in, learner-like erroneous ones out.

After Grundkiewicz et al. 2019, "Neural Grammatical Error Correction Systems with Unsupervised Pre-training on Synthetic
Data" (for each sentence an error rate per word drawn from a normal distribution; words replaced from confusion sets,
deleted, inserted, swapped; noise on characters), and Zhang et al. 2019, "Sequence-to-sequence Pre-training with Data
Augmentation for Sentence Rewriting" (words of frequent error types turned back into their likely errors). Words
are not replaced by chance, but as learners confuse them: by tables of function words, inflections and misspellings by
sound. Where a sentence has no place for an error of the drawn type, another type is drawn.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Any

from experiments.chance import line_seed, pick

from fairseq_aggdec.errors import AggdecError

from . import grammar_edits, surface_edits, word_edits
from .lexicon import Lexicon
from .sentence import Sentence

Edit = Callable[[Sentence, Lexicon, Random], bool]

EDITS: dict[str, tuple[Edit, float]] = {
    "spelling": (surface_edits.spelling, 0.34),
    "real_word": (surface_edits.real_word, 0.008),
    "noun_number": (grammar_edits.noun_number, 0.11),
    "article": (grammar_edits.article, 0.09),
    "preposition": (grammar_edits.preposition, 0.055),
    "verb_form": (grammar_edits.verb_form, 0.065),
    "agreement": (grammar_edits.agreement, 0.05),
    "word_form": (grammar_edits.word_form, 0.03),
    "pronoun": (word_edits.pronoun, 0.02),
    "quantifier": (word_edits.quantifier, 0.012),
    "homophone": (word_edits.homophone, 0.02),
    "connective": (word_edits.connective, 0.012),
    "comma_deletion": (surface_edits.comma_deletion, 0.14),
    "comma_insertion": (surface_edits.comma_insertion, 0.012),
    "final_mark": (surface_edits.final_mark, 0.012),
    "sentence_mark": (surface_edits.sentence_mark, 0.005),
    "apostrophe": (surface_edits.apostrophe, 0.02),
    "capital": (surface_edits.capital, 0.05),
    "spacing": (surface_edits.spacing, 0.022),
    "word_deletion": (word_edits.word_deletion, 0.06),
    "word_insertion": (word_edits.word_insertion, 0.045),
    "word_swap": (word_edits.word_swap, 0.01),
}
"""{error type: (edit, relative default weight)}"""

DEFAULT_WEIGHTS: dict[str, float] = {
    name: weight for name, (_, weight) in EDITS.items()
}

_SPELLING_SKEW = (0.35, 1.0, 2.5)
"""factors, one of which multiplies a sentence's weight of spelling errors, since writers differ"""
_TRIES = 5
"""how many error types are drawn at most until the sentence has a place for one"""


@dataclass(frozen=True)
class CorruptionConfig:
    """How many errors of which type."""

    error_rate: float = 0.17
    """mean number of errors per word; 0 changes nothing"""
    error_rate_std: float = 0.1
    """standard deviation of the rate from sentence to sentence (clipped to [0, max_error_rate])"""
    max_error_rate: float = 0.3
    """upper bound of a sentence's rate"""
    keep_clean: float = 0.1
    """share of sentences that get no error"""
    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    """{error type: relative weight}; a type that is not named has weight 0"""

    def __post_init__(self) -> None:
        check_range(
            vars(self),
            ["error_rate", "error_rate_std", "max_error_rate", "keep_clean"],
            0,
            1,
        )
        unknown = sorted(set(self.weights) - set(EDITS))
        if unknown:
            raise AggdecError(
                f"weights: unknown type {unknown[0]!r}: expected one of {', '.join(EDITS)}"
            )
        if wrong := [
            f"{name}={weight}"
            for name, weight in self.weights.items()
            if not 0 <= weight < math.inf
        ]:
            raise AggdecError(
                f"weights: {wrong[0]}: expected a finite number, 0 or more"
            )
        if not any(self.weights.values()):
            raise AggdecError("weights: all are 0: expected one above 0")


def check_range(
    values: Mapping[str, Any],
    names: Iterable[str],
    least: float,
    most: float = math.inf,
) -> None:
    """Raises `AggdecError` where one of the named numbers is out of range."""
    for name in names:
        if not least <= values[name] <= most:
            wanted = (
                f"from {least} to {most}" if most < math.inf else f"at least {least}"
            )
            raise AggdecError(f"{name}: {values[name]}: must be {wanted}")


class Corruptor:
    """Makes errors in sentences; keeps no state from one sentence to the next."""

    def __init__(
        self, lexicon: Lexicon, config: CorruptionConfig | None = None
    ) -> None:
        self.lexicon = lexicon
        self.config = config or CorruptionConfig()
        names = [name for name in EDITS if self.config.weights.get(name, 0) > 0]
        self._names = names
        self._edits = [EDITS[name][0] for name in names]
        self._cumulative = [
            list(
                accumulate(
                    self.config.weights[name] * (skew if name == "spelling" else 1)
                    for name in names
                )
            )
            for skew in _SPELLING_SKEW
        ]

    def corrupt(self, text: str, rng: Random) -> tuple[str, list[str]]:
        """The sentence with errors, and the types of the errors made.

        Args:
            text: one sentence with single spaces, none at its ends.
            rng: the random generator.
        """
        config = self.config
        if config.error_rate == 0 or rng.random() < config.keep_clean:
            return text, []
        sentence = Sentence(text)
        rate = rng.gauss(config.error_rate, config.error_rate_std)
        rate = min(max(rate, 0.0), config.max_error_rate)
        wanted = int(rate * len(sentence.words) + rng.random())
        cumulative = pick(self._cumulative, rng)
        total = cumulative[-1]
        made: list[str] = []
        for _ in range(wanted):
            for _ in range(_TRIES):
                kind = min(
                    bisect(cumulative, rng.random() * total), len(cumulative) - 1
                )
                if self._edits[kind](sentence, self.lexicon, rng):
                    made.append(self._names[kind])
                    break
        wrong = " ".join(sentence.text().split()) if made else text
        # a sentence that has lost its only word would be an empty source
        return (wrong, made) if wrong and wrong != text else (text, [])

    def corrupt_line(
        self, text: str, seed: int, line_number: int
    ) -> tuple[str, list[str]]:
        """`corrupt` with a random generator that depends on nothing but the seed and the line's number."""
        return self.corrupt(text, Random(line_seed(seed, line_number)))
