"""Outputs that cannot be corrections."""

import pytest

from fairseq_aggdec.text.degenerate import degenerated

LONG = "It was a long day and the whole family went home by train in the evening ."


@pytest.mark.parametrize(
    "source, output",
    [
        ("She have two brother .", "She has two brothers ."),
        ("the the", "the"),
        ("Hi", "Hi ."),
        ("Ok ok ok", "Ok ."),
        ("Thx", "Thank you very much , my dear friend ."),
        ("I I I I went went home home", "I went home ."),  # half of the words
        # the source repeats itself, too
        ("ha ha ha ha ha ha ha", "ha ha ha ha ha ha ha !"),
        ("a b c " * 5 + "d", "a b c " * 4 + "a b c , d"),
        # three times is no loop
        ("one two , one two , one two .", "one and two , one and two , one and two ."),
        ("", ""),
    ],
)
def test_a_correction_passes(source: str, output: str) -> None:
    assert degenerated(source.split(), output.split()) is None


@pytest.mark.parametrize(
    "source, output, reason",
    [
        ("Hi", "Hi " * 12, "the output is too long: 12 words for 1"),
        (LONG, LONG + " and" * 20, "the output is too long: 37 words for 17"),
        (LONG, "It was a long day .", "the output lost words: 6 are left of 17"),
        ("Hi there", "", "the output lost words: 0 are left of 2"),
        (
            LONG,
            "It was was was was was was in the evening .",
            "the output repeats 'was was was' 4 times",
        ),
    ],
)
def test_a_loop_or_a_loss_has_a_reason(source: str, output: str, reason: str) -> None:
    assert degenerated(source.split(), output.split()) == reason
