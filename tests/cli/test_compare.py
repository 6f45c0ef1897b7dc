from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError


def write(path: Path, hypotheses: list[tuple[float, str]]) -> str:
    path.write_text(
        "".join(f"H-{index}\t{score}\t{text}\n" for index, (score, text) in enumerate(hypotheses)), encoding="utf-8"
    )
    return str(path)


def test_differences_are_shown_with_their_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write(tmp_path / "a", [(-0.5, "a b c"), (-0.25, "c")])
    second = write(tmp_path / "b", [(-0.5001, "a b c"), (-0.25, "c")])  # scores may differ in rounding
    assert aggdec(["compare", first, second]) == 0
    assert capsys.readouterr().out == "identical: 2 of 2\n"
    second = write(tmp_path / "b", [(-0.50001, "a b d"), (-0.25, "c")])
    assert aggdec(["compare", first, second]) == 1
    output = capsys.readouterr().out
    assert "sentence 0: differs from token 2 on, scores differ by 0.000010" in output
    assert "A -0.500000\ta b c" in output
    assert "B -0.500010\ta b d" in output
    assert output.endswith("identical: 1 of 2\n")


def test_a_near_tie_is_said_and_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two tokens of the same probability, so neither has more than half; others agree by chance."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("H-0\t-1\ta b\nP-0\t-0.1 -1.5000 -0.1\nH-1\t-1\ta\nP-1\t-0.1 -0.2\n")
    second.write_text("H-0\t-1\ta c\nP-0\t-0.1 -1.5001 -0.3\nH-1\t-1\ta\nP-1\t-0.1 -0.2\n")
    assert aggdec(["compare", str(first), str(second)]) == 0
    output = capsys.readouterr().out
    assert "sentence 0: differs from token 1 on, scores differ by 0.000000, a near-tie" in output
    assert output.endswith("identical: 1 of 2, near-ties: 1\n")
    second.write_text("H-0\t-1\ta b\nP-0\t-0.1 -1.5 -0.1\nH-1\t-1\tb\nP-1\t-0.1001 -0.2\n")
    assert aggdec(["compare", str(first), str(second)]) == 1


def test_files_of_other_data_or_of_two_runs_are_refused(tmp_path: Path) -> None:
    one, other, twice = tmp_path / "one", tmp_path / "other", tmp_path / "twice"
    one.write_text("S-0\ta\nH-0\t-1\tb\n")
    other.write_text("S-0\tc\nH-0\t-1\tb\n")
    twice.write_text(2 * "S-0\ta\nH-0\t-1\tb\n")
    with pytest.raises(AggdecError, match="sentence 0 has another source in the second file"):
        aggdec(["compare", str(one), str(other)])
    with pytest.raises(AggdecError, match="twice, line 1: sentence 0 comes more than once"):
        aggdec(["compare", str(one), str(twice)])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("H-0\tx\tb", "a, line 1: this H- line is damaged; decode it again"),
        ("S-0\tb 12%|█▎   | 5/41 [00:02<00:18, 1.95it/s] de", "a, line 1: a progress bar stands in it"),
        ("S-0\ta", "a: holds no H- lines"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a").write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(AggdecError, match=message):
        aggdec(["compare", *[str(tmp_path / "a")] * 2])
