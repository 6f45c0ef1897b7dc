"""Chinese words with their frequencies and classes, from the dictionary of the package jieba.

A line of it is WORD COUNT CLASS; the classes are ICTCLAS's: n noun, v verb, a adjective, d adverb, r pronoun, q measure
word, ns place and so on. The dictionary is read where the package is installed; nothing of it is copied.
"""

import importlib.util
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random

from experiments.text_files import read_lines

from fairseq_aggdec.errors import AggdecError

_LONGEST = 4  # characters; longer entries are mostly names of institutions
# classes of single characters that nobody classified, some of them garbled
_FRAGMENTS = {"g", "x", "zg"}
# first bytes of the characters in GB 2312
_GB2312 = range(0xB0, 0xF8)
_LEVEL_1 = range(0xB0, 0xD8)


class Draw:
    """Draws items by their weights."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.items = list(weights)
        self._cumulative = list(accumulate(weights.values()))

    def __call__(self, rng: Random) -> str:
        """One of the items."""
        return rng.choices(self.items, cum_weights=self._cumulative)[0]


def draws(weights: Mapping[str, Mapping[str, float]]) -> dict[str, Draw]:
    """A `Draw` for each name."""
    return {name: Draw(part) for name, part in weights.items()}


@dataclass(frozen=True)
class Words:
    """What sentences are made of."""

    classes: Mapping[str, Draw]
    """the words of each class, by their counts"""
    containing: Mapping[str, Draw]
    """for each character of GB 2312's first level that occurs, the words with it, by their counts"""
    characters: Mapping[str, int]
    """{character: how often it occurs in the words}"""


def missing_package(name: str) -> AggdecError:
    """What is raised where a package is needed that is not installed."""
    return AggdecError(
        f"Chinese sentences are made with the package {name}; it is not installed: pip install {name}"
    )


def installed_words() -> Words:
    """The dictionary of the installed package jieba, which is not imported for it.

    Raises:
        AggdecError: it is not installed, or has no dictionary.
    """
    package = importlib.util.find_spec("jieba")
    if package is None or not package.submodule_search_locations:
        raise missing_package("jieba")
    file = Path(package.submodule_search_locations[0]) / "dict.txt"
    if not file.is_file():
        raise AggdecError(f"{file} does not exist: pip install --force-reinstall jieba")
    return read_words(read_lines(file), str(file))


def _first_byte(character: str) -> int:
    """That of a character in GB 2312; 0 where it has none: traditional and rare ones."""
    return (character.encode("gb2312", "ignore") or bytes(1))[0]


def read_words(lines: Iterable[str], name: str) -> Words:
    """Reads a dictionary; of its entries those of at most four characters, all of them Chinese and in GB 2312.

    Args:
        lines: word, count and class, separated by spaces.
        name: what an error calls the dictionary.

    Raises:
        AggdecError: a line has other fields, or no entry is left.
    """
    classes: dict[str, dict[str, int]] = defaultdict(dict)
    containing: dict[str, dict[str, int]] = defaultdict(dict)
    characters: Counter[str] = Counter()
    for number, line in enumerate(lines, start=1):
        word, count, kind = [*line.split(" ", 2), "", ""][:3]
        if not count.isdigit() or not kind:
            raise AggdecError(
                f"{name}, line {number}: word, count and class are expected: {line[:60]!r}"
            )
        weight = int(count)
        first_bytes = list(map(_first_byte, word))
        if kind in _FRAGMENTS or len(word) > _LONGEST or not weight:
            continue
        if any(byte not in _GB2312 for byte in first_bytes):
            continue
        classes[kind][word] = weight
        for character, byte in zip(word, first_bytes, strict=True):
            characters[character] += weight
            if byte in _LEVEL_1:
                containing[character][word] = weight
    if not characters:
        raise AggdecError(f"{name}: has no Chinese words")
    return Words(draws(classes), draws(containing), characters)
