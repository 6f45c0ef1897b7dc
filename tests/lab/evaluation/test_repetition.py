import pytest

from fairseq_aggdec.lab.evaluation.repetition import repetition_ratio


def test_by_hand() -> None:
    # the case of papers/001 Appendix D, "Angaben Angaben": 1 of 4 tokens; a b b b: 2 of 4
    assert repetition_ratio(["Nach den Angaben Angaben".split()]) == 0.25
    assert repetition_ratio(["Nach den Angaben Angaben".split(), "a b b b".split()]) == pytest.approx(3 / 8)
