from random import Random

import pytest

from configs.mucgec_small.sentences.errors import EDITS, ErrorRates, LearnerErrors
from configs.mucgec_small.sentences.homophones import Homophones
from fairseq_aggdec.errors import AggdecError

TEXT = "我在北京学习，他们也喜欢学习的。"
HOMOPHONES = Homophones({}, {**{character: [character] for character in TEXT if character not in "，。"}, "再": ["在"]})


def made(kind: str, text: str = TEXT) -> set[str]:
    """What an edit makes of a text with several seeds."""
    results = set()
    for seed in range(300):
        characters = list(text)
        changed = EDITS[kind][0](characters, HOMOPHONES, Random(seed))
        assert changed == (characters != list(text))
        results.add("".join(characters))
    return results - {text}


def test_omitted() -> None:
    results = made("omitted")
    assert len(results) == 6 + 8  # each character but the marks
    assert all(len(result) == len(TEXT) - 1 and result.count("，") == result.count("。") == 1 for result in results)
    assert made("omitted", "我。") == set()  # something is left


def test_swapped() -> None:
    results = made("swapped")
    assert "我在京北学习，他们也喜欢学习的。" in results
    assert len(results) == 5 + 7
    assert all(sorted(result) == sorted(TEXT) and result[6] == "，" for result in results)
    assert made("swapped", "人人") == set()


def test_how_many_errors() -> None:
    def changed(error_rate: float, keep_clean: float) -> int:
        errors = LearnerErrors(HOMOPHONES, ErrorRates(error_rate, keep_clean))
        return sum(errors.corrupt(TEXT, Random(seed)) != TEXT for seed in range(300))

    assert changed(error_rate=0, keep_clean=0) == changed(error_rate=0.5, keep_clean=1) == 0
    shares = changed(error_rate=0.03, keep_clean=0), changed(error_rate=0.1, keep_clean=0)
    assert 60 < shares[0] < 180 < shares[1]
    errors = LearnerErrors(HOMOPHONES, ErrorRates(error_rate=0.5, keep_clean=0, weights={"swapped": 1}))
    assert all(sorted(errors.corrupt(TEXT, Random(seed))) == sorted(TEXT) for seed in range(50))
    assert errors.corrupt(TEXT, Random(3)) == errors.corrupt(TEXT, Random(3)) != TEXT


def test_what_is_unknown_is_named() -> None:
    with pytest.raises(AggdecError, match="unknown kind of error 'spelling': expected one of confused, omitted"):
        ErrorRates(weights={"spelling": 1})
