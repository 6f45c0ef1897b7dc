"""The seeded faults of `scripts/mutants.sh` still fit the code; whether the suite sees them takes it some minutes."""

import ast

import pytest

from tests.mutants import MUTANTS, ROOT, Mutant, mutated


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_a_seeded_fault_can_be_put_into_the_code(mutant: Mutant) -> None:
    ast.parse(mutated(mutant))
    assert all((ROOT / test.partition("::")[0]).is_file() for test in mutant.tests.split())
