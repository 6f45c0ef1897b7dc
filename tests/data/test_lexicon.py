"""What is known of the words of a corpus."""

from __future__ import annotations

from fairseq_aggdec.data.lexicon import build_lexicon


def words(number: int) -> list[str]:
    """Different words that are neither nouns nor verbs by their form."""
    return [f"xq{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}" for i in range(number)]


def test_without_a_corpus_ordinary_words_are_known() -> None:
    lexicon = build_lexicon({})
    assert {"child", "children", "city"} <= lexicon.nouns
    assert lexicon.families.verbs["went"].base == "go"
    assert not lexicon.words
    assert not lexicon.neighbours


def test_a_small_vocabulary_does_not_say_which_words_there_are() -> None:
    """Otherwise most words of a small corpus would never be misspelt."""
    assert not build_lexicon(dict.fromkeys(words(1999), 5)).words
    assert build_lexicon(dict.fromkeys(words(2000), 5)).words == set(words(2000))


def test_nouns_and_neighbours_come_from_the_corpus() -> None:
    lexicon = build_lexicon({"spoon": 9, "spoons": 8, "from": 7, "form": 6})
    assert {"spoon", "spoons"} <= lexicon.nouns
    assert lexicon.neighbours["from"] == ("form",)
