"""Pairs for a Chinese corrector where there is no text to train on: (sentence with errors, sentence), both made."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from experiments.chance import line_seed
from experiments.sentence_pairs import Pair

from .dictionary import Words, installed_words
from .errors import with_errors
from .grammar import SentenceMaker
from .homophones import Homophones, readings


@dataclass(frozen=True)
class WordSentences:
    """How many pairs of which kind."""

    lines: int
    """number of pairs"""
    seed: int = 1
    """the same one makes the same pairs; each pair depends on it and the pair's number alone"""
    another_sentence: float = 0.4
    """how likely a further sentence follows on the same line"""
    error_rate: float = 0.05
    """errors per character"""
    keep_clean: float = 0.1
    """share of lines without errors"""

    def pairs(self, words: Words | None = None) -> Iterator[Pair]:
        """Yields the pairs, running text.

        Args:
            words: the dictionary; by default that of the installed package jieba.

        Raises:
            AggdecError: a package is not installed.
        """
        words = words or installed_words()
        maker = SentenceMaker(words)
        homophones = Homophones(words.characters, readings(words.characters))
        for number in range(1, self.lines + 1):
            rng = Random(line_seed(self.seed, number))
            text = "".join(maker.line(rng, self.another_sentence))
            rates = self.error_rate, self.keep_clean
            yield with_errors(text, homophones, rng, *rates), text
