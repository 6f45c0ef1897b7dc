"""Errors of learners of Chinese: a character that sounds alike, one missing, one too many, two in the wrong order.

Confused characters mostly sound alike: in 83 % of the wrong words that Liu et al. 2010 collected ("Visually and
Phonologically Similar Characters in Incorrect Simplified Chinese Words"). What is left out and added are by preference
function words.
"""

from collections.abc import Callable
from itertools import pairwise
from random import Random

from experiments.chance import pick

from .homophones import Homophones

FUNCTION_CHARACTERS = "的了是在有不也都就会要很得地着过和对给把被到能个们"
_DOUBLED_SHARE = 0.25  # of the characters too many
_TRIES = 5  # how often another error is drawn when a sentence has no place for one

Edit = Callable[[list[str], Homophones, Random], bool]
"""Changes a line's characters; whether it has a place for it. Marks, digits and letters stay as they are."""


def confused(characters: list[str], homophones: Homophones, rng: Random) -> bool:
    """Writes another character of the same or nearly the same sound: 在 for 再."""
    places = _places(characters, homophones)
    if not places:
        return False
    place = pick(places, rng)
    before = characters[place]
    characters[place] = homophones.of(before, rng)
    return characters[place] != before


def omitted(characters: list[str], homophones: Homophones, rng: Random) -> bool:
    """Leaves a character out, in half of the cases a function word."""
    places = _places(characters, homophones)
    if rng.random() < 0.5:
        function_words = [i for i in places if characters[i] in FUNCTION_CHARACTERS]
        places = function_words or places
    if len(places) < 2:  # something is to be left
        return False
    del characters[pick(places, rng)]
    return True


def added(characters: list[str], homophones: Homophones, rng: Random) -> bool:
    """Writes a function word where none belongs, or a character twice."""
    places = _places(characters, homophones)
    if not places:
        return False
    place = pick(places, rng)
    doubled = rng.random() < _DOUBLED_SHARE
    written = characters[place] if doubled else rng.choice(FUNCTION_CHARACTERS)
    characters.insert(place, written)
    return True


def swapped(characters: list[str], homophones: Homophones, rng: Random) -> bool:
    """Exchanges two neighbouring characters."""
    known = _places(characters, homophones)
    places = [
        i
        for i, after in pairwise(known)
        if after == i + 1 and characters[i] != characters[after]
    ]
    if not places:
        return False
    place = pick(places, rng)
    characters[place : place + 2] = reversed(characters[place : place + 2])
    return True


def _places(characters: list[str], homophones: Homophones) -> list[int]:
    """The positions of characters whose sound is known."""
    return [i for i, character in enumerate(characters) if character in homophones]


_EDITS: dict[Edit, float] = {confused: 0.45, omitted: 0.25, added: 0.15, swapped: 0.15}
"""{edit: its share}"""


def with_errors(
    line: str, homophones: Homophones, rng: Random, error_rate: float, keep_clean: float
) -> str:
    """The line with errors in it, never empty.

    Args:
        line: running text, without spaces.
        homophones: the characters that sound alike.
        rng: the source of every random choice.
        error_rate: mean number of errors per character; a line has any number from none to twice as many.
        keep_clean: share of lines that stay as they are.
    """
    if rng.random() < keep_clean:
        return line
    characters = list(line)
    wanted = int(2 * error_rate * len(line) * rng.random() + rng.random())
    for _ in range(wanted):
        for _ in range(_TRIES):
            (edit,) = rng.choices([*_EDITS], [*_EDITS.values()])
            if edit(characters, homophones, rng):
                break
    return "".join(characters)
