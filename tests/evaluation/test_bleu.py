import pytest

from fairseq_aggdec.evaluation.bleu import detokenised_bleu

TEXT = ['Sie sagte: "Das ist schön, nicht wahr?"', "Tom hat zwei Brüder."]
TOKENS = ['Sie sagte : " Das ist schön , nicht wahr ? "', "Tom hat zwei Brüder ."]


def test_tokens_of_the_reference_itself_are_perfect() -> None:
    assert detokenised_bleu(TOKENS, [TEXT], "de") == pytest.approx(100)


def test_a_wrong_word_costs() -> None:
    worse = [TOKENS[0], "Tom hat drei Brüder ."]
    assert 50 < detokenised_bleu(worse, [TEXT], "de") < 95


def test_any_reference_counts() -> None:
    second = ["Sie sagte nichts, gar nichts.", "Tom hat drei Brüder."]
    outputs = [TOKENS[0], "Tom hat drei Brüder ."]
    assert detokenised_bleu(outputs, [TEXT, second], "de") == pytest.approx(100)
