"""Equality with stock fairseq: a fixed part of what `scripts/fuzz.sh` does, and that it finds and repeats a fault."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.tokens import Order
from tests.fuzzing import run
from tests.fuzzing.cases import ADVERSARIES, BACKENDS, KINDS, LANGUAGES, Case, case_of, cases
from tests.fuzzing.checking import check


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_random_cases_decode_as_stock_fairseq_does(first: int) -> None:
    run.quiet()
    counts: Counter[str] = Counter()
    for seed in range(first, first + 40):
        case = case_of(seed)
        try:
            counts.update(check(case))
        except Exception as error:
            error.add_note(f"case_of({seed}): {case}")
            raise
    assert counts["refused"] < counts["decodings"], "fairseq itself refuses few"
    assert sum(count for name, count in counts.items() if "accepted" in name) > 0, "drafts that are right pass"


def test_cases_have_every_kind_mode_adversary_and_number_of_heads() -> None:
    found = list(map(case_of, range(1000)))
    models = [model for case in found for model in case.models]
    modes = [mode for case in found for mode in case.modes]
    assert {model["kind"] for model in models} == set(KINDS)
    assert {model.get("decoder_attention_heads") for model in models} >= {1, 2, 3, 4, 8, 12, 16}
    assert {mode["decoding"] for mode in modes} == {
        "greedy", "iad", "gad", "speculative", "blockwise", "aggressive-beam",
    }  # fmt: skip
    assert {mode.get("drafts") for mode in modes} == {None, "oracle", *ADVERSARIES}
    assert {(mode.get("precision"), mode.get("bit_exact")) for mode in modes} == {
        (None, None), (None, True), ("int8", None), ("int8", True),
    }  # fmt: skip
    assert {case.language for case in found} == {"", *LANGUAGES}
    assert {len(batch) for case in found for batch in case.batches} >= {1, 2, 7, 16, 32}
    assert {case.backend for case in found} == set(BACKENDS)
    assert {(case.threads, case.block_ngrams) for case in found} == {(1, False), (1, True), (2, False), (2, True)}
    assert any(len(case.models) == 2 for case in found)


def test_a_fault_is_found_and_its_case_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in the wrong order, once one has left. hypothesis would also make the case smaller, for a minute."""
    right = Outputs._remove_ended

    def swapped(self: Any) -> Order | None:
        remaining = right(self)
        if remaining is not None:
            self.texts.reverse()
        return remaining

    def test(case: Case) -> None:
        run.checked(Counter())(case)

    quick = {**run.COMMON, "phases": (Phase.generate,)}
    with monkeypatch.context() as patch:
        patch.setattr(Outputs, "_remove_ended", swapped)
        with pytest.raises((AssertionError, RuntimeError)) as error:
            settings(max_examples=100, derandomize=True, **quick)(given(cases())(test))()
        notes = "\n".join(error.value.__notes__)
        assert "@reproduce_failure" in notes
        case: Case = eval(notes[notes.index("Case(") : notes.rindex("),\n)") + 1], {"Case": Case})
        with pytest.raises((AssertionError, RuntimeError)):
            check(case)
    check(case)
