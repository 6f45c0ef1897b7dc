"""Kinds of misspelling: what each makes of a word, and of which words it makes nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from configs.gec_small.errors import spelling

Kind = Callable[[str, Random], str]


@pytest.mark.parametrize(
    ("kind", "word", "expected"),
    [
        (spelling.by_sound, "receive", "recieve"), (spelling.by_sound, "responsible", "responsable"),
        (spelling.silent_e, "because", "becaus"), (spelling.silent_e, "making", "makeing"),
        (spelling.silent_e, "completely", "completly"), (spelling.silent_e, "statement", "statment"),
        (spelling.vowel, "grammar", "grammer"), (spelling.delete_letter, "government", "goverment"),
        (spelling.undouble, "different", "diferent"), (spelling.double, "coming", "comming"),
        (spelling.double, "until", "untill"), (spelling.transpose, "friend", "freind"),
        (spelling.keyboard, "cat", "cst"), (spelling.insert_letter, "travel", "travvel"),
    ],
)  # fmt: skip
def test_kinds_of_misspelling(kind: Kind, word: str, expected: str) -> None:
    assert expected in {kind(word, Random(seed)) for seed in range(400)}
