"""Chinese characters that sound alike, by the package pypinyin."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from random import Random

from .dictionary import Draw, missing_package

_MOST_READINGS = 2  # of a character; further ones are rare
_FOLDS = (
    (re.compile("^([zcs])h"), r"\1"),
    (re.compile("ng$"), "n"),
    (re.compile("^[nr]"), "l"),
)


def readings(characters: Iterable[str]) -> dict[str, list[str]]:
    """The pronunciations of characters without their tones, the usual one first.

    Raises:
        AggdecError: the package pypinyin is not installed.
    """
    try:
        from pypinyin import Style, pinyin
    except ImportError:
        raise missing_package("pypinyin") from None
    every = {
        character: pinyin(character, style=Style.NORMAL, heteronym=True)[0]
        for character in characters
    }
    return {
        character: list(dict.fromkeys(found))[:_MOST_READINGS]
        for character, found in every.items()
    }


def near_sound(reading: str) -> str:
    """What sounds have in common that learners mix up: zh and z, ch and c, sh and s; ng and n; n, r and l."""
    for pattern, folded in _FOLDS:
        reading = pattern.sub(folded, reading)
    return reading


class Homophones:
    """Draws a character that sounds like another one."""

    def __init__(
        self,
        counts: Mapping[str, int],
        sounds: Mapping[str, list[str]],
        near_share: float = 0.25,
    ) -> None:
        """
        Args:
            counts: {character: how often it occurs}; frequent ones are more often written by mistake.
            sounds: {character: its readings without tones}.
            near_share: how often the sound may be only nearly the same.
        """
        self._counts = counts
        self._sounds = sounds
        self._near_share = near_share
        self._same = self._by_sound(lambda reading: reading)
        self._near = self._by_sound(near_sound)

    def _by_sound(self, fold: Callable[[str], str]) -> dict[str, Draw]:
        weights: dict[str, dict[str, float]] = defaultdict(dict)
        for character, own in self._sounds.items():
            for reading in own:
                weights[fold(reading)][character] = (
                    1 + self._counts.get(character, 0) ** 0.5
                )
        return {sound: Draw(part) for sound, part in weights.items()}

    def __contains__(self, character: str) -> bool:
        """Whether the sound of a character is known; marks, digits and letters have none."""
        return character in self._sounds

    def of(self, character: str, rng: Random) -> str:
        """Another character that sounds like this one; "" if the one that was drawn is this one."""
        reading = rng.choice(self._sounds[character])
        near = rng.random() < self._near_share
        other = (self._near[near_sound(reading)] if near else self._same[reading])(rng)
        return "" if other == character else other
