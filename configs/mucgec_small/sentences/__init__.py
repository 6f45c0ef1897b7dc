"""Pairs for a Chinese corrector where there is no text to train on: (sentence with errors, sentence), both made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from experiments.chance import line_seed
from experiments.sentence_pairs import Pair
from experiments.text_files import read_lines

from fairseq_aggdec.errors import AggdecError

from .dictionary import Words, dictionary_file, read_words
from .errors import ErrorRates, LearnerErrors
from .grammar import SentenceMaker
from .homophones import Homophones, readings


@dataclass(frozen=True)
class WordSentences:
    """How many pairs of which kind."""

    lines: int
    """number of pairs"""
    seed: int = 1
    """the same one makes the same pairs; each pair depends on it and the pair's number alone"""
    min_words: int = 4
    """of a sentence"""
    max_words: int = 20
    another_sentence: float = 0.4
    """how likely a further sentence follows on the same line"""
    rare_share: float = 0.08
    """share of the nouns, verbs and adjectives that are drawn so that every character occurs; see `SentenceMaker`"""
    error_rate: float = ErrorRates.error_rate
    """errors per character"""
    keep_clean: float = ErrorRates.keep_clean
    """share of lines without errors"""

    def __post_init__(self) -> None:
        if self.lines < 1 or not 0 <= self.another_sentence < 1:
            raise AggdecError(
                "lines must be 1 or more, another_sentence from 0 to below 1"
            )

    def pairs(self, words: Words | None = None) -> Iterator[Pair]:
        """Yields the pairs, running text.

        Args:
            words: the dictionary; by default that of the installed package jieba.

        Raises:
            AggdecError: a package is not installed.
        """
        if words is None:
            file = dictionary_file()
            words = read_words(read_lines(file), str(file))
        maker = SentenceMaker(words, self.min_words, self.max_words, self.rare_share)
        homophones = Homophones(words.characters, readings(words.characters))
        errors = LearnerErrors(homophones, ErrorRates(self.error_rate, self.keep_clean))
        for number in range(1, self.lines + 1):
            rng = Random(line_seed(self.seed, number))
            text = "".join(maker.line(rng, self.another_sentence))
            yield errors.corrupt(text, rng), text
