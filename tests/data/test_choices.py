"""Choosing a place and a wrong form."""

from __future__ import annotations

from collections import Counter
from random import Random

from fairseq_aggdec.data.choices import pick, substitute
from fairseq_aggdec.data.sentence import Sentence


def test_every_place_and_option_is_as_likely() -> None:
    rng = Random(1)
    places = Counter(pick([2, 5, 9], rng) for _ in range(3000))
    options = Counter(pick(("a", "b", "c"), rng) for _ in range(3000))
    for counts in (places, options):
        assert len(counts) == 3
        assert all(900 < count < 1100 for count in counts.values())  # 4 standard deviations
    assert set(places) == {2, 5, 9}


def test_one_word_that_the_table_knows_is_replaced() -> None:
    found = set()
    for seed in range(100):
        sentence = Sentence("They live there.")
        assert substitute(sentence, {"there": ("their", "they're"), "live": ("leave",)}, Random(seed))
        found.add(sentence.text())
    assert found == {"They leave there.", "They live their.", "They live they're."}
