"""Chinese characters that sound alike, by the package pypinyin."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from random import Random

from .dictionary import draws, missing_package

_MOST_READINGS = 2  # of a character; further ones are rare
_NEAR_SHARE = 0.25
"""how often a sound may be only nearly the same"""


def readings(characters: Iterable[str]) -> dict[str, list[str]]:
    """The pronunciations of characters without their tones, the usual one first.

    Raises:
        AggdecError: the package pypinyin is not installed.
    """
    try:
        from pypinyin import Style, pinyin
    except ImportError:
        raise missing_package("pypinyin") from None
    sounds = {}
    for character in characters:
        (every,) = pinyin(character, style=Style.NORMAL, heteronym=True)
        sounds[character] = list(dict.fromkeys(every))[:_MOST_READINGS]
    return sounds


def near_sound(reading: str) -> str:
    """What sounds have in common that learners mix up: zh and z, ch and c, sh and s; ng and n; n, r and l."""
    reading = re.sub("^([zcs])h", r"\1", reading)
    return re.sub("^[nr]", "l", re.sub("ng$", "n", reading))


class Homophones:
    """Draws a character that sounds like another one."""

    def __init__(
        self, counts: Mapping[str, int], sounds: Mapping[str, list[str]]
    ) -> None:
        """
        Args:
            counts: {character: how often it occurs}; frequent ones are more often written by mistake.
            sounds: {character: its readings without tones}.
        """
        self._sounds = sounds
        same: dict[str, dict[str, float]] = defaultdict(dict)
        near: dict[str, dict[str, float]] = defaultdict(dict)
        for character, of_character in sounds.items():
            weight = 1 + counts.get(character, 0) ** 0.5
            for reading in of_character:
                same[reading][character] = weight
                near[near_sound(reading)][character] = weight
        self._same = draws(same)
        self._near = draws(near)

    def __contains__(self, character: str) -> bool:
        """Whether the sound of a character is known; marks, digits and letters have none."""
        return character in self._sounds

    def of(self, character: str, rng: Random) -> str:
        """A character that sounds like this one, possibly itself."""
        reading = rng.choice(self._sounds[character])
        if rng.random() < _NEAR_SHARE:
            return self._near[near_sound(reading)](rng)
        return self._same[reading](rng)
