"""The error synthesiser: each type makes the error it names, and the whole is deterministic and leaves text whole."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.gec_small.errors.corruption import EDITS, CorruptionConfig, Corruptor, Edit
from configs.gec_small.errors.corruption_stream import corrupt_stream
from configs.gec_small.errors.lexicon import Lexicon, build_lexicon
from configs.gec_small.errors.sentence import Sentence
from tests.configs.gec_small.essays import ESSAY, changed_words, essay_lexicon, outcomes


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return essay_lexicon()


@pytest.mark.parametrize("name", list(EDITS))
def test_each_type_alone_changes_essays_and_nothing_else_is_reported(lexicon: Lexicon, name: str) -> None:
    corruptor = Corruptor(lexicon, CorruptionConfig(error_rate=0.2, keep_clean=0, weights={name: 1.0}))
    made = Counter[str]()
    for number, text in enumerate(ESSAY * 40):
        wrong, types = corruptor.corrupt_line(text, 5, number)
        assert (wrong != text) == bool(types)
        made.update(types)
    assert set(made) == {name}


def test_the_errors_of_a_seed_stay_the_same_byte_for_byte(lexicon: Lexicon) -> None:
    """Prepared data depend on it: a change of a draw, a table, an inflection or a kind of misspelling is met here."""
    corruptor = Corruptor(lexicon, CorruptionConfig(0.3, 0, 0.3, keep_clean=0))
    made = "\n".join(corruptor.corrupt_line(ESSAY[i % 5], 7, i)[0] for i in range(2000))
    assert (
        hashlib.sha256(made.encode()).hexdigest() == "bb38a0bdd9e05de193709ef273d34289f187d48197e31dc930ad99fcdbe8d118"
    )


def test_errors_grow_with_the_rate_up_to_the_bound_and_a_share_stays_clean(lexicon: Lexicon) -> None:
    def errors(rate: float, bound: float) -> float:
        corruptor = Corruptor(lexicon, CorruptionConfig(rate, 0.0, bound, 0))
        words = sum(len(Sentence(ESSAY[i % 5]).words) for i in range(1000))
        return sum(len(corruptor.corrupt_line(ESSAY[i % 5], 3, i)[1]) for i in range(1000)) / words

    assert errors(0.05, 1) == pytest.approx(0.05, rel=0.1)
    assert errors(0.15, 1) == pytest.approx(0.15, rel=0.1)
    assert errors(0.5, 0.1) == pytest.approx(0.1, rel=0.1)
    # a rate this high leaves no sentence without an error, so that only the kept ones are unchanged
    corruptor = Corruptor(lexicon, CorruptionConfig(0.3, 0, 0.3, keep_clean=0.25))
    unchanged = sum(not corruptor.corrupt_line(ESSAY[i % 5], 3, i)[1] for i in range(4000))
    assert 0.22 < unchanged / 4000 < 0.28  # 4 standard deviations


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(
        st.one_of(st.sampled_from("abceisT ,.'’-12\u0301éßİ中😀"), st.characters(exclude_categories=["Cs"])),
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


@pytest.mark.parametrize("edit", [edit for edit, _ in EDITS.values()], ids=list(EDITS))
def test_one_error_in_one_place(edit: Edit) -> None:
    for text in ESSAY:
        for wrong in outcomes(edit, text, draws=60):
            assert 1 <= changed_words(text, wrong) <= 4


def test_memory_does_not_grow_with_the_input(lexicon: Lexicon) -> None:
    def peak(lines: int) -> int:
        tracemalloc.start()
        for _ in corrupt_stream(Corruptor(lexicon), (ESSAY[i % 5].encode() for i in range(lines)), 1, chunk_size=100):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(300)
    assert peak(3000) < 1.3 * peak(500)
