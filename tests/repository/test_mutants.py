"""The seeded faults of `scripts/mutants.sh` still fit the code; whether the suite sees them takes it some minutes."""

from tests.support.mutants import FAULTS, is_killed, misfits


def test_every_seeded_fault_can_be_put_into_the_code() -> None:
    assert misfits() == []


def test_the_fault_that_made_the_promise_false_is_seen() -> None:
    """It once reached users, and once survived the suite: so every run tries it, not `scripts/mutants.sh` alone."""
    [fault] = [one for one in FAULTS if one["fault"] == "attention writes its scores into the caller's mask"]
    assert is_killed(fault)
