import pytest

from fairseq_aggdec.lab.score.rouge import rouge


def test_lins_example() -> None:
    # Lin 2004, section 3.1: S1 police killed the gunman, S2 police kill the gunman, S3 the gunman kill police:
    # longest common subsequences of 3 and 2 of 4 words.
    assert rouge(["police kill the gunman"], [["police killed the gunman"]])[2] == pytest.approx(3 / 4)
    assert rouge(["the gunman kill police"], [["police killed the gunman"]])[2] == pytest.approx(2 / 4)


def test_sentences_of_a_summary_are_matched_one_by_one() -> None:
    score = rouge(["b two. a one."], [["a one. b two."]])
    assert score[3] == pytest.approx(1)
    assert score[2] == pytest.approx(1 / 2)


def test_the_best_reference_counts_and_documents_are_averaged() -> None:
    score = rouge(["a b", "p"], [["x y", "p q"], ["a b", "r"]])
    assert score[0] == pytest.approx((1 + 2 / 3) / 2)
