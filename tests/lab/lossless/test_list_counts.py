"""What counts as the same list, as a near-tie and as another list."""

from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.lossless.list_counts import Hypothesis, ListCounts, compare, read_lists

LIST = [Hypothesis(-0.5, "a b"), Hypothesis(-0.75, "a"), Hypothesis(-0.7500001, "b")]


def count(*found: Hypothesis) -> ListCounts:
    return compare({7: LIST, 8: LIST}, {7: LIST, 8: list(found)})


def outcome(counts: ListCounts) -> tuple[int, int, int]:
    assert counts.lists == 2
    assert counts.hypotheses == 6
    return counts.equal, counts.near_ties, counts.differing


def test_scores_may_differ_by_rounding() -> None:
    counts = count(Hypothesis(-0.500001, "a b"), *LIST[1:])
    assert outcome(counts) == (2, 0, 0)
    assert counts.largest_score_difference == pytest.approx(1e-6)
    assert counts.differences == []


def test_two_that_change_places_at_one_score_are_a_near_tie() -> None:
    counts = count(LIST[0], LIST[2], LIST[1])
    assert outcome(counts) == (1, 1, 0)
    assert counts.differences == [
        "sentence 8, place 1, near-tie: -0.7500001 'b' for -0.7500000 'a'",
        "sentence 8, place 2, near-tie: -0.7500000 'a' for -0.7500001 'b'",
    ]


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ([Hypothesis(-0.51, "a b"), *LIST[1:]], "sentence 8, place 0, differs: -0.5100000 'a b' for -0.5000000 'a b'"),
        ([LIST[0], Hypothesis(-0.7, "c"), LIST[2]], "sentence 8, place 1, differs: -0.7000000 'c' for -0.7500000 'a'"),
        ([*LIST, LIST[0]], "sentence 8, place 3, differs: -0.5000000 'a b' for nothing"),
    ],
    ids=["score", "text", "too long"],
)
def test_anything_else_is_another_list(found: list[Hypothesis], line: str) -> None:
    counts = count(*found)
    assert outcome(counts) == (1, 0, 1)
    assert counts.differences == [line]


def test_a_missing_sentence_is_named() -> None:
    with pytest.raises(AggdecError, match="1 sentences are in one of the two runs only, first number 8"):
        compare({7: LIST, 8: LIST}, {7: LIST})


def test_h_lines_are_read_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "generate-test.txt"
    file.write_text("S-3\ta\nH-3\t-0.5\tb c\nD-3\t-0.5\tb c\nP-3\t-1 -0.25\nH-3\t-0.75\t\nH-1\t-1e-05\ta\n")
    assert read_lists(file) == {3: [(-0.5, "b c"), (-0.75, "")], 1: [(-1e-5, "a")]}
    file.write_text("H-3\tb c\n")
    with pytest.raises(AggdecError, match="damaged"):
        read_lists(file)
