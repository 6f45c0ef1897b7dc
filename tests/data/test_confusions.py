"""The tables and the rules that derive tables from a vocabulary."""

from __future__ import annotations

from random import Random

import pytest

from fairseq_aggdec.data import confusions, spelling
from fairseq_aggdec.data.inflection import add_ed, add_ing, add_s, adverb, compared, plural, word_families
from fairseq_aggdec.data.misspellings import MISSPELLINGS
from fairseq_aggdec.data.vocabulary import count_words, sound_key, spelling_neighbours, within_one_edit
from fairseq_aggdec.data.word_tables import replacement_table

TABLES = {
    name: table for name, table in vars(confusions).items() if name.isupper() and isinstance(table, dict)
    and name != "PHRASES_BY_FIRST_WORD"
} | {"MISSPELLINGS": MISSPELLINGS}  # fmt: skip


@pytest.mark.parametrize("name", list(TABLES))
def test_tables_hold_confusions_only(name: str) -> None:
    for correct, wrong in TABLES[name].items():
        assert wrong, correct
        assert correct not in wrong
        assert all(form == " ".join(form.split()) != "" for form in wrong)


def test_misspellings_cover_frequent_words() -> None:
    assert len(MISSPELLINGS) >= 300
    assert "recieve" in MISSPELLINGS["receive"]
    assert {word for word in MISSPELLINGS if word.lower() != word} <= {"English"}


@pytest.mark.parametrize("text", ["because", "because:", "a: b; a: c", ": x"])
def test_malformed_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="table entry"):
        replacement_table(text)


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
def test_inflection_rules(rule, word: str, expected: object) -> None:  # type: ignore[no-untyped-def]
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


def test_words_are_counted_in_lower_case_text_only() -> None:
    counts = count_words(["The cat saw the cat.", "A cat saw Rome and the don't don't don't."], size=10, min_count=2)
    assert list(counts.items()) == [("cat", 3), ("don't", 3), ("saw", 2), ("the", 2)]


def test_vocabulary_is_bounded() -> None:
    # 40,000 different words, one of them frequent throughout.
    def name(i: int) -> str:
        return "".join(chr(97 + i // 26**k % 26) for k in range(4))

    counts = count_words((f"often {name(i)}" for i in range(40_000)), size=100, min_count=1)
    assert len(counts) == 100
    assert counts["often"] == 40_000


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("form", "from", True), ("quite", "quiet", True), ("then", "than", True), ("lose", "loose", True),
     ("cat", "cat", False), ("cat", "dog", False), ("abcd", "badc", False), ("a", "abc", False)],
)  # fmt: skip
def test_within_one_edit(a: str, b: str, expected: bool) -> None:
    assert within_one_edit(a, b) is expected
    assert within_one_edit(b, a) is expected


def test_neighbours_are_one_edit_apart_and_never_inflections() -> None:
    counts = dict.fromkeys("from form farm cat cats hope hoped then than them quite quiet quit".split(), 9)
    neighbours = spelling_neighbours(counts)
    assert "form" in neighbours["from"]
    assert set(neighbours["quite"]) == {"quiet", "quit"}
    assert "cat" not in neighbours
    assert "hope" not in neighbours
    assert all(within_one_edit(word, other) for word, others in neighbours.items() for other in others)


def test_sound_key_ignores_vowels_and_silent_letters() -> None:
    assert sound_key("wether") == sound_key("weather")
    assert sound_key("foto") != sound_key("toto")


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
def test_kinds_of_misspelling(kind, word: str, expected: str) -> None:  # type: ignore[no-untyped-def]
    assert expected in {kind(word, Random(seed)) for seed in range(400)}


@pytest.mark.parametrize("word", ["cat", "because", "rhythm", "strength", "aaa", "queue"])
def test_misspellings_stay_near_the_word(word: str) -> None:
    for seed in range(300):
        wrong = spelling.misspell(word, Random(seed))
        assert wrong
        assert abs(len(wrong) - len(word)) <= 2
