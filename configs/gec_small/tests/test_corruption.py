"""The maker of errors is deterministic, keeps to its rate and leaves text whole."""

import hashlib
from random import Random

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
    def errors(config: CorruptionConfig) -> list[int]:
        corruptor = Corruptor(lexicon, config)
        lines = (corruptor.corrupt_line(ESSAY[i % 5], 3, i) for i in range(1000))
        return [len(made) for _, made in lines]

    words = 200 * sum(
        len(Sentence(line, lexicon, Random()).word_positions) for line in ESSAY
    )
    for rate, bound, expected in ((0.05, 1, 0.05), (0.15, 1, 0.15), (0.5, 0.1, 0.1)):
        made = errors(CorruptionConfig(rate, 0.0, bound, keep_clean=0))
        assert sum(made) / words == pytest.approx(expected, rel=0.1)
    # a rate this high leaves no sentence without an error, so that only the kept ones are unchanged
    made = errors(CorruptionConfig(0.3, 0, 0.3, keep_clean=0.25))
    assert 0.2 < made.count(0) / 1000 < 0.3  # 3.6 standard deviations


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
    corruptor = Corruptor(build_lexicon({}), CorruptionConfig(0.9, 0.0, 1.0, 0))
    assert Sentence(text, corruptor.lexicon, Random()).text() == text
    wrong, made = corruptor.corrupt_line(text, seed, 1)
    assert (wrong, made) == corruptor.corrupt_line(text, seed, 1)
    assert "\n" not in wrong
    assert bool(wrong) == bool(text)
    assert wrong == " ".join(wrong.split())
