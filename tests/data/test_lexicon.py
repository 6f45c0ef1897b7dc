"""What is known of the words of a corpus."""

from __future__ import annotations

from fairseq_aggdec.data.lexicon import build_lexicon


def test_without_a_corpus_ordinary_words_are_known() -> None:
    lexicon = build_lexicon({})
    assert {"child", "children", "city"} <= lexicon.nouns
    assert lexicon.families.verbs["went"].base == "go"
    assert not lexicon.words
    assert not lexicon.neighbours


def test_nouns_and_neighbours_come_from_the_corpus() -> None:
    lexicon = build_lexicon({"spoon": 9, "spoons": 8, "from": 7, "form": 6})
    assert {"spoon", "spoons"} <= lexicon.nouns
    assert lexicon.neighbours["from"] == ("form",)
