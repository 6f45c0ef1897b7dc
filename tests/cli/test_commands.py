"""Commands that read files and print: the list of verbs, `compare`, `report`, `tune`."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fairseq_aggdec
from fairseq_aggdec.cli.verbs import GROUPS, VERBS, parse
from fairseq_aggdec.cli.verbs import main as aggdec
from tests.lab.bench.tiny import made_up_record, made_up_run
from tests.support.helpers import ToyModel, refused_with


def test_the_verbs_and_the_package_are_named_from_any_folder_without_torch_or_fairseq(
    tmp_path: Path,
) -> None:
    program = (
        "import sys; from fairseq_aggdec.cli.verbs import main; [main([word]) for word in ('--help', '--version', "
        "'user-dir')]; print({'torch', 'fairseq', 'numpy'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", program]
    printed = subprocess.check_output(command, text=True, timeout=60, cwd=tmp_path)
    *lines, version, folder, imported = printed.splitlines()
    assert imported == "set()"
    assert version.startswith(f"aggdec {fairseq_aggdec.__version__} (")
    assert folder == str(Path(fairseq_aggdec.__file__).parent.absolute())
    assert [line[:-1] for line in lines if line.endswith(":")] == list(GROUPS)
    verbs = [line[2:].partition("  ")[0] for line in lines if line.startswith("  ")]
    assert verbs == list(VERBS)


def test_an_option_of_0_is_given() -> None:
    verb = parse(["correct", "--mode", "iad++", "--tolerance", "0", "a text"])
    assert verb.given(type(verb)).items() >= {"mode": "iad++", "tolerance": 0}.items()


SAME = "H-1\t-1\ta\nP-1\t-0.1 -0.2\n"


def compare(folder: Path, *texts: str) -> int | None:
    for name, text in zip("ab", texts, strict=True):
        (folder / name).write_text(text, "utf-8")
    return aggdec(["compare", str(folder / "a"), str(folder / "b")])


@pytest.mark.parametrize(
    "first, second, status, printed",
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
    "text, message",
    [
        ("S-0\tc\nH-0\t-1\tb\n", "sentence 0 has another source in the second file"),
        ("S-0\ta\nH-0\t-1\tb\n" * 2, "b, line 3: sentence 0 comes more than once"),
        ("H-0\tx\tb\n", "b, line 1: this H- line is damaged; decode it again"),
        ("S-0\tb 12%|█▎   | 5/41 [00:02] de\n", "b, line 1: a progress bar stands in"),
        ("S-0\ta\n", "b: holds no H- lines"),
    ],
)
def test_a_file_of_other_data_or_of_two_runs_or_damaged_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    with refused_with(message):
        compare(tmp_path, "S-0\ta\nH-0\t-1\tb\n", text)


def test_records_become_tables_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_edits: Any = {"speed_up_by_edit_ratio": [[0.1, 3.0]], "speed_ups": [0, 4]}
    runs = [
        made_up_run("beam5", 0.4),
        made_up_run("greedy", 0.2),
        made_up_run("iad", 0.06, iterations=10, **by_edits),
        made_up_run("beam5", 0.8, batch_size=8),
    ]
    files = [str(tmp_path / f"{name}.json") for name in ("small", "other")]
    for file in files:
        made_up_record(runs).save(Path(file))
    figures = tmp_path / "figures"
    aggdec(["report", *files, "--figures", str(figures)])
    text = capsys.readouterr().out
    assert text.index("## small") < text.index("## other")
    assert "commit 0123456789ab, 2030-01-01T00:00:00+00:00" in text
    cells = "| iad | 0.0600 (0.0300-0.1200) | 6.67x | 3.33x |"
    assert cells in " ".join(text.split())
    for name in ("batch_sizes.png", "edit_ratio.svg", "sentences.svg"):
        assert (figures / f"small_{name}").stat().st_size > 0
        assert str(figures / f"small_{name}") in text


def test_tune_measures_prints_and_goes_on_under_the_same_conditions_only(
    correction_model: ToyModel,
    correction_drafter: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "points.json"
    paths = [correction_model.data, "--path", correction_model.checkpoint]
    paths += ["--drafter-path", correction_drafter, "--output", output]
    options = "--block-sizes 3,6 --betas 3 --tolerances 1,2 --repeats 1 --metric exact --beam 2 --batch-size 2 --limit"
    words = ["tune", *map(str, paths), *options.split()]
    aggdec([*words, "2"])
    printed = capsys.readouterr().out
    assert "| beam 2 " in printed
    assert "| gad++  | 3   | 3   | 1 " in printed
    assert "high-quality" in printed
    # two block sizes, then the other tolerance with the faster one
    assert output.read_text().count('"search": "gad++"') == 3
    conditions = r"measured under other conditions \(sentences: 3 now, 2 there"
    with refused_with(conditions):
        aggdec([*words, "3"])
