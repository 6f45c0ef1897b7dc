import pytest

from fairseq_aggdec.lab.score.rouge import rouge


def test_sentences_of_a_summary_are_matched_one_by_one() -> None:
    assert rouge(["b two. a one."], [["a one. b two."]])[2:] == pytest.approx([1 / 2, 1])


def test_the_best_reference_counts_and_documents_are_averaged() -> None:
    score = rouge(["a b", "p"], [["x y", "p q"], ["a b", "r"]])
    assert score[0] == pytest.approx((1 + 2 / 3) / 2)
