"""Rows whose drafts fail wait, longer and longer."""

from fairseq_aggdec.decoding.patience import Patience


def steps_with_drafts(patience: Patience, rows: list[int], accepted: list[int], steps: int) -> list[list[bool]]:
    """Which rows have a draft of four tokens at each step, where always so many of it pass."""
    had = []
    for _ in range(steps):
        drafted = [0 if waits else 4 for waits in patience.waiting(rows)]
        patience.learn(rows, drafted, [min(pair) for pair in zip(drafted, accepted, strict=True)])
        had.append([length > 0 for length in drafted])
    return had


def test_waits_double_up_to_sixteen_steps() -> None:
    had = [draft for (draft,) in steps_with_drafts(Patience(1), [0], [0], 120)]
    tried = [step for step, draft in enumerate(had) if draft]
    assert tried == [0, 1, 2, 4, 7, 12, 21, 38, 55, 72, 89, 106]


def test_what_passes_is_never_waited_for() -> None:
    assert all(all(had) for had in steps_with_drafts(Patience(3), [0, 1, 2], [4, 1, 2], 30))


def test_success_restores_patience() -> None:
    patience = Patience(1)
    steps_with_drafts(patience, [0], [0], 7)  # four failures
    assert steps_with_drafts(patience, [0], [1], 1) == [[True]]
    assert steps_with_drafts(patience, [0], [0], 5) == [[True], [True], [True], [False], [True]]


def test_rows_are_told_apart_when_others_have_left() -> None:
    patience = Patience(3)
    steps_with_drafts(patience, [0, 1, 2], [1, 1, 0], 3)
    assert steps_with_drafts(patience, [2, 0], [0, 1], 2) == [[False, True], [True, True]]


def test_no_draft_is_no_failure() -> None:
    patience = Patience(1)
    for _ in range(10):
        patience.learn([0], [0], [0])
    assert patience.waiting([0]) == [False]
