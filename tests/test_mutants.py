"""The seeded faults of `scripts/mutants.sh` still fit the code; whether the suite sees them takes it some minutes."""

import ast

import pytest

from tests.mutants import MUTANTS, ROOT, Mutant, killed, mutated


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_a_seeded_fault_can_be_put_into_the_code(mutant: Mutant) -> None:
    ast.parse(mutated(mutant))
    assert all((ROOT / test.partition("::")[0]).is_file() for test in mutant.tests.split())


def test_the_fault_that_made_the_promise_false_is_seen() -> None:
    """It once reached users, and once survived the suite: so every run tries it, not `scripts/mutants.sh` alone."""
    [fault] = [mutant for mutant in MUTANTS if mutant.what == "attention writes its scores into the caller's mask"]
    assert killed(fault)
