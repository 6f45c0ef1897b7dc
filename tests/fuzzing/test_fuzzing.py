"""Equality with stock fairseq: a fixed part of what `scripts/fuzz.sh` does, and that it finds and repeats a fault."""

import re
from collections import Counter
from typing import Any

import pytest

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.tokens import RowSelection
from tests.fuzzing import run
from tests.fuzzing.cases import case_of
from tests.fuzzing.checking import check


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_random_cases_decode_as_stock_fairseq_does(first: int) -> None:
    run.quiet()
    counts: Counter[str] = Counter()
    for seed in range(first, first + 40):
        case = case_of(seed, most=32)
        try:
            counts.update(check(case))
        except Exception as error:
            error.add_note(f"case_of({seed}): {case}")
            raise
    assert counts["refused"] < counts["decodings"], "fairseq itself refuses few"
    assert sum(count for name, count in counts.items() if "accepted" in name) > 0, (
        "drafts that are right pass"
    )


def test_a_fault_is_found_and_its_seed_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows in the wrong order, once one has left."""
    right = Outputs._remove_ended

    def swapped(self: Any) -> RowSelection | None:
        remaining = right(self)
        if remaining is not None:
            self.texts.reverse()
        return remaining

    with monkeypatch.context() as patch:
        patch.setattr(Outputs, "_remove_ended", swapped)
        assert run.main(["--minutes", "5", "--seed", "7"]) == 1
        seed = int(re.findall(r"--seed (\d+)", capsys.readouterr().out)[0])
        with pytest.raises((AssertionError, RuntimeError)):
            check(case_of(seed))
    check(case_of(seed))
