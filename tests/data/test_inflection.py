"""Word families found by spelling rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairseq_aggdec.data.inflection import (
    add_ed,
    add_ing,
    add_s,
    adverb,
    compared,
    plural,
    word_families,
)
from fairseq_aggdec.data.word_tables import table


@pytest.mark.parametrize(
    ("rule", "word", "expected"),
    [
        (add_s, "box", "boxes"), (add_s, "city", "cities"), (add_s, "day", "days"), (add_s, "go", "goes"),
        (add_ing, "make", "making"), (add_ing, "stop", "stopping"), (add_ing, "lie", "lying"),
        (add_ing, "see", "seeing"), (add_ing, "begin", "beginning"), (add_ing, "open", "opening"),
        (add_ed, "study", "studied"), (add_ed, "plan", "planned"), (add_ed, "play", "played"),
        (add_ed, "hope", "hoped"),
        (plural, "child", "children"), (plural, "church", "churches"),
        (adverb, "easy", "easily"), (adverb, "possible", "possibly"), (adverb, "basic", "basically"),
        (compared, "big", ("bigger", "biggest")), (compared, "happy", ("happier", "happiest")),
        (compared, "large", ("larger", "largest")),
    ],
)  # fmt: skip
def test_inflection_rules(rule: Callable[[str], object], word: str, expected: object) -> None:
    assert rule(word) == expected


def test_families_are_found_in_the_vocabulary() -> None:
    families = word_families("bake bakes baked baking bed spoon spoons swift swiftly odd odder oddest this thi".split())
    assert families.verbs["baking"].base == "bake"
    assert families.verbs["baked"].third == "bakes"
    assert families.plurals["spoon"] == "spoons"
    assert families.singulars["spoons"] == "spoon"
    assert families.adjectives["swiftly"] == "swift"
    assert "more odder" in families.comparatives["odder"]
    assert "bed" not in families.verbs
    assert "is" not in families.verbs  # agreement has it


def test_ordinary_words_are_known_without_a_vocabulary() -> None:
    families = word_families([])
    assert families.plurals["child"] == "children"
    assert families.verbs["bought"].gerund == "buying"
    assert families.adverbs["good"] == "well"
    assert "more easier" in families.comparatives["easier"]
    assert {"has", "did", "were"}.isdisjoint(families.verbs)  # agreement has them


@pytest.mark.parametrize("base", ["go", "write", "cut"])
def test_every_form_of_a_verb_leads_to_all_of_them(base: str) -> None:
    past, participle = table("irregular_verbs")[base]
    verbs = word_families([]).verbs
    assert {verbs[form].base for form in (base, add_s(base), past, participle, add_ing(base))} == {base}
