"""Chinese sentences without an author: words drawn by their frequency into the places of a small phrase grammar.

They mean nothing, but have the words, function words, orders and marks of Chinese, from which a small corrector learns
which characters stand together.
"""

from pathlib import Path
from random import Random

from experiments.yaml_files import read_yaml

from fairseq_aggdec.errors import AggdecError

from .dictionary import Draw, Words

_RULES = {
    symbol: Draw(ways)
    for symbol, ways in read_yaml(Path(__file__).parent / "grammar.yaml").items()
}
_LENGTHS = range(4, 21)
"""words of a sentence, marks within it included"""
_OPEN = {"n", "v", "vn", "a"}
"""classes of words of which a rare one may take the place"""
_RARE_SHARE = 0.08
"""share of these that is drawn by way of a character, each of GB 2312's first level as likely as the others, so that
the rarest of them occur"""


class SentenceMaker:
    """Makes sentences; holds no state between them."""

    def __init__(self, words: Words) -> None:
        """Raises `AggdecError` where the dictionary lacks a class of words."""
        self._classes = words.classes
        self._rare = list(words.containing.values())
        parts = {
            part
            for ways in _RULES.values()
            for way in ways.items
            for part in way.split()
        }
        self._needed = {part for part in parts if part.isascii() and part.islower()}
        missing = sorted(self._needed - words.classes.keys())
        if missing:
            raise AggdecError(
                f"the dictionary has no words of class {', '.join(missing)}"
            )

    def sentence(self, rng: Random) -> list[str]:
        """Words and marks of one sentence: clauses, with a mark after each."""
        wanted = rng.choice(_LENGTHS)
        sentence: list[str] = []
        while len(sentence) < wanted:
            clause = self._expand("CLAUSE", rng)
            if len(sentence) + len(clause) <= _LENGTHS[-1]:
                sentence += clause + self._expand("BETWEEN", rng)
            elif len(sentence) > _LENGTHS[0]:
                break
        return sentence[:-1] + self._expand("END", rng)

    def line(self, rng: Random, another: float) -> list[str]:
        """Words and marks of one or more sentences; `another`: how likely a further one follows."""
        words = self.sentence(rng)
        while rng.random() < another:
            words += self.sentence(rng)
        return words

    def _expand(self, symbol: str, rng: Random) -> list[str]:
        words: list[str] = []
        for part in _RULES[symbol](rng).split():
            if part in _RULES:
                words += self._expand(part, rng)
            elif part in _OPEN and rng.random() < _RARE_SHARE:
                words.append(rng.choice(self._rare)(rng))
            elif part in self._needed:
                words.append(self._classes[part](rng))
            else:
                words.append(part)
        return words
