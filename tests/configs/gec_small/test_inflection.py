"""Word families found by spelling rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from configs.gec_small.errors.inflection import add_ed, add_ing, add_s, adverb, compared, plural, word_families


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
