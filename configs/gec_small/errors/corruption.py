"""Synthetic grammatical errors: clean English sentences in, learner-like erroneous ones out.

After Grundkiewicz et al. 2019, "Neural Grammatical Error Correction Systems with Unsupervised Pre-training on Synthetic
Data" (for each sentence an error rate per word drawn from a normal distribution; words replaced from confusion sets,
deleted, inserted, swapped; noise on characters), and Zhang et al. 2019, "Sequence-to-sequence Pre-training with Data
Augmentation for Sentence Rewriting" (words of frequent error types turned back into their likely errors). Words
are not replaced by chance, but as learners confuse them: by tables of function words, inflections and misspellings by
sound. Where a sentence has no place for an error of the drawn type, another type is drawn.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from experiments.chance import line_seed, pick

from fairseq_aggdec.errors import AggdecError, option_name

from . import grammar_edits, surface_edits, word_edits
from .lexicon import Lexicon
from .sentence import NoPlaceError, Sentence

Edit = Callable[[Sentence], None]

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

DEFAULT_WEIGHTS = {name: weight for name, (_, weight) in EDITS.items()}

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
    weights: Mapping[str, float] = field(default_factory=DEFAULT_WEIGHTS.copy)
    """{error type: relative weight}; a type that is not named has weight 0"""

    def __post_init__(self) -> None:
        """Raises `AggdecError`, which names the option of `aggdec corrupt`, for a value out of range."""
        for name in ("error_rate", "error_rate_std", "max_error_rate", "keep_clean"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise AggdecError(f"{option_name(name)} {value}: must be from 0 to 1")
        for name, weight in self.weights.items():
            if name not in EDITS:
                expected = ", ".join(EDITS)
                raise AggdecError(
                    f"--weights: unknown type {name!r}: expected one of {expected}"
                )
            if not 0 <= weight < math.inf:
                raise AggdecError(
                    f"--weights {name}={weight}: expected a finite number, 0 or more"
                )
        if not any(self.weights.values()):
            raise AggdecError("--weights: all are 0: expected one above 0")


class Corruptor:
    """Makes errors in sentences; keeps no state from one sentence to the next."""

    def __init__(self, lexicon: Lexicon, config: CorruptionConfig) -> None:
        self.lexicon = lexicon
        self.config = config
        weights = {name: config.weights.get(name, 0.0) for name in EDITS}
        self._weights = [
            [*(weights | {"spelling": weights["spelling"] * skew}).values()]
            for skew in _SPELLING_SKEW
        ]

    def corrupt_line(
        self, text: str, seed: int, line_number: int
    ) -> tuple[str, list[str]]:
        """The sentence with errors, and their types; it depends on the seed and the line's number alone.

        `text`: one sentence with single spaces, none at its ends.
        """
        config = self.config
        rng = Random(line_seed(seed, line_number))
        if config.error_rate == 0 or rng.random() < config.keep_clean:
            return text, []

        # how many errors, and by which weights
        sentence = Sentence(text, self.lexicon, rng)
        rate = rng.gauss(config.error_rate, config.error_rate_std)
        rate = min(max(rate, 0.0), config.max_error_rate)
        wanted = int(rate * len(sentence.word_positions) + rng.random())
        weights = pick(self._weights, rng)

        made: list[str] = []
        for _ in range(wanted):
            for _ in range(_TRIES):
                (kind,) = rng.choices([*EDITS], weights)
                with suppress(NoPlaceError):
                    EDITS[kind][0](sentence)
                    made.append(kind)
                    break
        wrong = " ".join(sentence.text().split()) if made else text
        # a sentence that has lost its only word would be an empty source
        return (wrong, made) if wrong and wrong != text else (text, [])
