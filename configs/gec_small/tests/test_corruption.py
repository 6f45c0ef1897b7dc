"""The maker of errors is deterministic, keeps to its rate and leaves text whole."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.gec_small.errors.corruption import CorruptionConfig, Corruptor
from configs.gec_small.errors.lexicon import Lexicon, build_lexicon
from configs.gec_small.errors.sentence import Sentence
from configs.gec_small.tests.essays import ESSAY, essay_lexicon


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return essay_lexicon()


def test_the_errors_of_a_seed_stay_the_same_byte_for_byte(lexicon: Lexicon) -> None:
    """Prepared data depend on it: a change of a draw, a table, an inflection or a kind of misspelling is met here."""
    corruptor = Corruptor(lexicon, CorruptionConfig(0.3, 0, 0.3, keep_clean=0))
    made = "\n".join(corruptor.corrupt_line(ESSAY[i % 5], 7, i)[0] for i in range(2000))
    assert (
        hashlib.sha256(made.encode()).hexdigest()
        == "bb38a0bdd9e05de193709ef273d34289f187d48197e31dc930ad99fcdbe8d118"
    )


def test_errors_grow_with_the_rate_up_to_the_bound_and_a_share_stays_clean(
    lexicon: Lexicon,
) -> None:
    def errors(rate: float, bound: float) -> float:
        corruptor = Corruptor(lexicon, CorruptionConfig(rate, 0.0, bound, 0))
        words = sum(len(Sentence(ESSAY[i % 5]).words) for i in range(1000))
        return (
            sum(len(corruptor.corrupt_line(ESSAY[i % 5], 3, i)[1]) for i in range(1000))
            / words
        )

    assert errors(0.05, 1) == pytest.approx(0.05, rel=0.1)
    assert errors(0.15, 1) == pytest.approx(0.15, rel=0.1)
    assert errors(0.5, 0.1) == pytest.approx(0.1, rel=0.1)
    # a rate this high leaves no sentence without an error, so that only the kept ones are unchanged
    corruptor = Corruptor(lexicon, CorruptionConfig(0.3, 0, 0.3, keep_clean=0.25))
    unchanged = sum(
        not corruptor.corrupt_line(ESSAY[i % 5], 3, i)[1] for i in range(4000)
    )
    assert 0.22 < unchanged / 4000 < 0.28  # 4 standard deviations


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(
        st.one_of(
            st.sampled_from("abceisT ,.'’-12\u0301éßİ中😀"),
            st.characters(exclude_categories=["Cs"]),
        ),
        max_size=60,
    ),
    seed=st.integers(-(2**70), 2**70),
)
def test_any_text_survives(text: str, seed: int) -> None:
    text = " ".join(text.split())
    assert Sentence(text).text() == text
    corruptor = Corruptor(build_lexicon({}), CorruptionConfig(0.9, 0.0, 1.0, 0))
    wrong, made = corruptor.corrupt_line(text, seed, 1)
    assert (wrong, made) == corruptor.corrupt_line(text, seed, 1)
    assert "\n" not in wrong
    assert bool(wrong) == bool(text)
    assert wrong == " ".join(wrong.split())
