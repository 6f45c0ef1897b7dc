"""Tests of `aggdec compare`."""

from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError

SAME = "H-1\t-1\ta\nP-1\t-0.1 -0.2\n"


def compare(folder: Path, *texts: str) -> int | None:
    for name, text in zip("ab", texts, strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    return aggdec(["compare", str(folder / "a"), str(folder / "b")])


@pytest.mark.parametrize(
    ("first", "second", "status", "printed"),
    [
        # but for rounding
        ("H-0\t-0.5\ta b c\n", "H-0\t-0.5001\ta b c\n", 0, ["identical: 1 of 1\n"]),
        (
            "H-0\t-0.5\ta b c\n", "H-0\t-0.50001\ta b d\n", 1,
            ["sentence 0: differs from token 2 on, scores differ by 0.000010", "A -0.500000\ta b c",
             "B -0.500010\ta b d", "identical: 0 of 1\n"],
        ),
        (  # two tokens of the same probability, so neither has more than half
            f"H-0\t-1\ta b\nP-0\t-0.1 -1.5000 -0.1\n{SAME}", f"H-0\t-1\ta c\nP-0\t-0.1 -1.5001 -0.3\n{SAME}", 0,
            ["differs from token 1 on, scores differ by 0.000000, a near-tie", "identical: 1 of 2, near-ties: 1\n"],
        ),
        # alike by chance
        (SAME, "H-1\t-1\tb\nP-1\t-0.1001 -0.2\n", 1, ["identical: 0 of 1\n"]),
    ],
)  # fmt: skip
def test_differences_are_shown_with_their_scores_and_a_near_tie_is_no_fault(
    first: str,
    second: str,
    status: int,
    printed: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert compare(tmp_path, first, second) == status
    output = capsys.readouterr().out
    assert all(text in output for text in printed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S-0\tc\nH-0\t-1\tb\n", "sentence 0 has another source in the second file"),
        ("S-0\ta\nH-0\t-1\tb\n" * 2, "b, line 3: sentence 0 comes more than once"),
        ("H-0\tx\tb\n", "b, line 1: this H- line is damaged; decode it again"),
        (
            "S-0\tb 12%|█▎   | 5/41 [00:02<00:18, 1.95it/s] de\n",
            "b, line 1: a progress bar stands in it",
        ),
        ("S-0\ta\n", "b: holds no H- lines"),
    ],
)
def test_a_file_of_other_data_or_of_two_runs_or_damaged_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(AggdecError, match=message):
        compare(tmp_path, "S-0\ta\nH-0\t-1\tb\n", text)
