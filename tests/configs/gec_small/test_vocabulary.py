"""What is known of the words of a corpus: the frequent ones, their spelling neighbours, the nouns."""

from __future__ import annotations

from configs.gec_small.errors.lexicon import build_lexicon
from configs.gec_small.errors.vocabulary import count_words, spelling_neighbours, within_one_edit


def test_words_are_counted_in_lower_case_text_only() -> None:
    counts = count_words(["The cat saw the cat.", "A cat saw Rome and the don't don't don't."], size=10, min_count=2)
    assert list(counts.items()) == [("cat", 3), ("don't", 3), ("saw", 2), ("the", 2)]


def test_neighbours_are_one_edit_apart_and_never_inflections() -> None:
    counts = dict.fromkeys("from form farm cat cats hope hoped then than them quite quiet quit".split(), 9)
    neighbours = spelling_neighbours(counts)
    assert "form" in neighbours["from"]
    assert set(neighbours["quite"]) == {"quiet", "quit"}
    assert "cat" not in neighbours
    assert "hope" not in neighbours
    assert all(within_one_edit(word, other) for word, others in neighbours.items() for other in others)


def test_nouns_and_neighbours_come_from_the_corpus_and_ordinary_words_are_known_without() -> None:
    lexicon = build_lexicon({"spoon": 9, "spoons": 8, "from": 7, "form": 6})
    assert {"spoon", "spoons", "child", "children"} <= lexicon.nouns
    assert lexicon.neighbours["from"] == ("form",)
    assert not build_lexicon({}).words
