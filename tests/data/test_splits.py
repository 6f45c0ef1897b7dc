import pytest

from fairseq_aggdec.data.splits import hold_out, sentence_key

SENTENCES = [f"Sentence number {number}." for number in range(200)]


def test_key_is_the_same_everywhere() -> None:
    assert sentence_key("Sentence number 1.") == 3356773917118939634


def test_sets_are_disjoint_and_have_their_sizes() -> None:
    sets = hold_out(SENTENCES, {"valid": 10, "test": 20})
    assert {name: len(part) for name, part in sets.items()} == {"valid": 10, "test": 20}
    assert not set(sets["valid"]) & set(sets["test"])
    assert set(sets["valid"]) | set(sets["test"]) <= set(SENTENCES)


def test_order_and_repetition_do_not_matter() -> None:
    assert hold_out(SENTENCES, {"valid": 10}) == hold_out([*reversed(SENTENCES), *SENTENCES], {"valid": 10})


def test_more_text_moves_few_sentences() -> None:
    before = set(hold_out(SENTENCES, {"test": 50})["test"])
    after = set(hold_out([*SENTENCES, *(f"New {number}." for number in range(20))], {"test": 50})["test"])
    assert len(before & after) >= 40


def test_too_little_text() -> None:
    with pytest.raises(ValueError, match="too few"):
        hold_out(SENTENCES, {"valid": 100, "test": 100})
