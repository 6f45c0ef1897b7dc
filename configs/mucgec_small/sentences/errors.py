"""Errors of learners of Chinese: a character that sounds alike, one missing, one too many, two in the wrong order.

Confused characters mostly sound alike: in 83 % of the wrong words that Liu et al. 2010 collected ("Visually and
Phonologically Similar Characters in Incorrect Simplified Chinese Words"). What is left out and added are by preference
function words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from experiments.chance import pick

from fairseq_aggdec.errors import AggdecError

from .dictionary import Draw
from .homophones import Homophones

FUNCTION_CHARACTERS = "的了是在有不也都就会要很得地着过和对给把被到能个们"
_DOUBLED_SHARE = 0.25  # of the characters too many
_TRIES = 5  # how often another error is drawn when a sentence has no place for one

Edit = Callable[[list[str], Homophones, Random], bool]
"""Changes a line's characters; whether it found a place for it. Marks, digits and letters stay as they are."""


def confused(characters: list[str], homophones: Homophones, rng: Random) -> bool:
    """Writes another character of the same or nearly the same sound: 在 for 再."""
    places = _places(characters, homophones)
    if not places:
        return False
    place = pick(places, rng)
    other = homophones.of(characters[place], rng)
    if other:
        characters[place] = other
    return bool(other)


def omitted(characters: list[str], homophones: Homophones, rng: Random) -> bool:
    """Leaves a character out, in half of the cases a function word."""
    places = _places(characters, homophones)
    if rng.random() < 0.5:
        places = [
            place for place in places if characters[place] in FUNCTION_CHARACTERS
        ] or places
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
    characters.insert(
        place, characters[place] if doubled else rng.choice(FUNCTION_CHARACTERS)
    )
    return True


def swapped(characters: list[str], homophones: Homophones, rng: Random) -> bool:
    """Exchanges two neighbouring characters."""
    known = [character in homophones for character in characters]
    pairs = zip(characters, characters[1:], known, known[1:], strict=False)
    places = [
        place
        for place, (one, two, *both) in enumerate(pairs)
        if all(both) and one != two
    ]
    if not places:
        return False
    place = pick(places, rng)
    characters[place : place + 2] = reversed(characters[place : place + 2])
    return True


def _places(characters: list[str], homophones: Homophones) -> list[int]:
    return [
        place for place, character in enumerate(characters) if character in homophones
    ]


EDITS: dict[str, tuple[Edit, float]] = {
    "confused": (confused, 0.45),
    "omitted": (omitted, 0.25),
    "added": (added, 0.15),
    "swapped": (swapped, 0.15),
}
"""{kind of error: (edit, default weight)}; the weights are relative."""


@dataclass(frozen=True)
class ErrorRates:
    """How many errors of which kind."""

    error_rate: float = 0.05
    """mean number of errors per character; a line has any number from none to twice as many"""
    keep_clean: float = 0.1
    """share of lines left as they are"""
    weights: Mapping[str, float] = field(
        default_factory=lambda: {kind: weight for kind, (_, weight) in EDITS.items()}
    )
    """{kind of error: relative weight}; one left out does not occur"""

    def __post_init__(self) -> None:
        for name in ("error_rate", "keep_clean"):
            if not 0 <= getattr(self, name) <= 1:
                raise AggdecError(
                    f"{name} is {getattr(self, name)}: expected a number from 0 to 1"
                )
        if unknown := sorted(set(self.weights) - set(EDITS)):
            raise AggdecError(
                f"unknown kind of error {unknown[0]!r}: expected one of {', '.join(EDITS)}"
            )
        if not all(weight >= 0 for weight in self.weights.values()) or not any(
            self.weights.values()
        ):
            raise AggdecError(
                "weights of errors must not be negative, and one of them above 0"
            )


class LearnerErrors:
    """Makes errors; holds no state between lines."""

    def __init__(self, homophones: Homophones, rates: ErrorRates | None = None) -> None:
        self._homophones = homophones
        self._rates = rates or ErrorRates()
        self._kinds = Draw(self._rates.weights)

    def corrupt(self, line: str, rng: Random) -> str:
        """The line with errors in it, never empty.

        Args:
            line: running text, without spaces.
            rng: source of every random choice.
        """
        if rng.random() < self._rates.keep_clean:
            return line
        characters = list(line)
        for _ in range(
            int(2 * self._rates.error_rate * len(line) * rng.random() + rng.random())
        ):
            for _ in range(_TRIES):
                edit, _ = EDITS[self._kinds(rng)]
                if edit(characters, self._homophones, rng):
                    break
        return "".join(characters)
