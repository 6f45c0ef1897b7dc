"""Tables with the papers' numbers and ours side by side."""

from dataclasses import replace

from fairseq_aggdec.lab.grid import Group
from fairseq_aggdec.lab.reporting.beside import (
    beside_grids,
    changes,
    numbers_of,
    side_by_side,
)
from fairseq_aggdec.lab.reporting.counterparts import Counterparts, Source
from fairseq_aggdec.lab.reporting.paper_tables import paper_table
from tests.lab.reporting.made_up import made_up_results

TABLE = paper_table("ge2022/5")
ROWS = {
    "Teacher": "teacher-beam5",
    "AR verifier (beam = 5)": "beam5",
    "AR verifier (beam = 1)": "beam1",
    "NAR drafter (k = 25)": "nar",
    "GAD (k = 25)": "gad",
    "GAD++ (k = 25, high-quality)": "gad++-3-1",
}
COLUMNS = {"Iter.": "iterations", "Speed": "speed-up", "EN-DE": "sacrebleu"}
COUNTERPARTS = Counterparts(
    TABLE,
    {
        (system, column): Source(measure=measure, label=label, record="bench").filled()
        for system, label in ROWS.items()
        for column, measure in COLUMNS.items()
    },
    greedy="AR verifier (beam = 1)",
    beam="AR verifier (beam = 5)",
    ours="k = 10",
)
NUMBERS = numbers_of(made_up_results(), COUNTERPARTS)


def test_numbers_and_ratios_beside_the_papers() -> None:
    grid = side_by_side(COUNTERPARTS, NUMBERS)
    assert [group.columns for group in grid.groups] == [("paper", "ours", "ratio")] * 3 + [("paper",)] * 3
    rows = {row[0]: row[1:] for row in grid.rows}
    assert list(rows) == list(TABLE.rows), "rows without a counterpart stay"
    assert rows["GAD (k = 25)"] == (
        *("4.9", "2.5", "0.51", "3.0", "4.0", "1.33", "28.73", "35.40", "1.23"),
        *("32.18", "34.83", "34.65"),
    )
    assert rows["AR verifier (beam = 1)"][:6] == ("N", "–", "–", "1.1", "2.0", "1.82")
    assert rows["LevT"] == ("2.1", "–", "–", "4.0", "–", "–", "27.27", "–", "–", "–", "–", "33.26")
    assert rows["Teacher"][3:6] == ("–", "–", "–"), "not timed, and the paper has no speed"
    assert all(len(row) == 12 for row in rows.values())
    (note,) = grid.notes
    assert note.endswith("P100, PyTorch 1.10. Ours: k = 10. Ratio: ours over the paper's.")


def test_the_last_column_says_in_what_ours_differ() -> None:
    said = {"GAD (k = 25)": "k = 10", "Teacher": "4+3 layers", "LevT": "not measured"}
    grid = side_by_side(replace(COUNTERPARTS, differs=said), NUMBERS)
    assert grid.groups[-1] == Group("ours differs in", ("",))
    rows = {row[0]: row[-1] for row in grid.rows}
    assert (rows["GAD (k = 25)"], rows["Teacher"], rows["LevT"]) == ("k = 10", "4+3 layers", "")
    assert {len(row) for row in grid.rows} == {14}


def test_changes_of_quality() -> None:
    grid = changes(COUNTERPARTS, NUMBERS)
    assert grid is not None
    assert [group.heading for group in grid.groups] == ["EN-DE (BLEU) against greedy", "EN-DE (BLEU) against beam"]
    rows = {row[0]: row[1:] for row in grid.rows}
    assert set(rows) == set(ROWS)
    assert rows["GAD++ (k = 25, high-quality)"] == ("+0.16", "−0.25", "+0.00", "−0.75")
    assert rows["GAD (k = 25)"] == ("+0.00", "+0.00", "−0.16", "−0.50")


def test_tables_of_which_nothing_was_measured_are_named() -> None:
    other = Counterparts(paper_table("ge2022/9"), {("GAD-base", "Tok."): Source(measure="accepted tokens", label="x")})
    grids, missing = beside_grids(made_up_results(), [COUNTERPARTS, other])
    assert [grid.name for grid in grids] == ["ge2022-5-beside", "ge2022-5-change"]
    assert missing == ["ge2022/9"]
