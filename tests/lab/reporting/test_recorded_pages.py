"""docs/results: what the pages say beside the papers is what the recorded measurements of docs/benchmarks come to."""

from pathlib import Path

import pytest

from fairseq_aggdec.lab.benchmarking.record import load_record
from fairseq_aggdec.lab.grid import DASH, Grid, markdown
from fairseq_aggdec.lab.reporting.beside import numbers_of, side_by_side
from fairseq_aggdec.lab.reporting.counterparts import Counterparts, read_tables
from fairseq_aggdec.lab.reporting.results import Results

ROOT = Path(__file__).resolve().parents[3]
PAGES = {
    "gec_small": {"bench/bench": "gec_small_jfleg_test_cpu"},
    "tatoeba_de_en": {"bench/bench": "tatoeba_de_en_test_cpu"},
    "tatoeba_en_de": {"bench/bench": "tatoeba_en_de_test_cpu", "bench/baselines": "tatoeba_en_de_baselines_cpu"},
    "ua_gec_small": {"bench/bench-test": "ua_gec_small_test_cpu"},
    "wikisplit_small": {"bench/bench-test1": "wikisplit_small_asset_cpu"},
}
"""experiments, and the files of docs/benchmarks that are what tables.yaml names"""
TIMED = {"seconds", "milliseconds", "speed-up", "timed BLEU", "accepted block", "module ms", "module %"}
"""measures of nothing but such a record"""


def cells(table: str) -> dict[str, list[str]]:
    """Rows of Markdown, by their first cell."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def timed(counterparts: Counterparts, results: Results) -> Grid:
    """Beside the papers, the numbers of the records alone."""
    numbers = numbers_of(results, counterparts)
    of_records = {place: number for place, number in numbers.items() if counterparts.sources[place].measure in TIMED}
    return side_by_side(counterparts, of_records)


@pytest.mark.parametrize("experiment", PAGES)
def test_a_page_has_the_numbers_of_the_records(experiment: str) -> None:
    page = (ROOT / f"docs/results/{experiment}_beside_papers.md").read_text(encoding="utf-8")
    files = {name: ROOT / f"docs/benchmarks/{file}.json" for name, file in PAGES[experiment].items()}
    records = {name: load_record(path) for name, path in files.items()}
    assert {record.command for record in records.values()} <= set(page.splitlines()), "of other measurements"
    results = Results(experiment, "", True, "", None, "", {}, records=records)
    compared = 0
    for counterparts in read_tables(ROOT / "configs" / experiment).counterparts.values():
        made = markdown(timed(counterparts, results))
        _, found, written = page.partition(made.partition("\n")[0] + "\n")
        assert found, f"papers/{counterparts.table.name} is not on the page"
        ours, theirs = cells(made), cells(written.partition("\n## ")[0])
        assert list(ours) == list(theirs)
        for place, heading in enumerate(ours["system"]):
            if heading.endswith(", paper") and ours["system"][place + 1 : place + 2] == ["ours"]:
                there = theirs["system"].index(heading)
                for system in list(ours)[2:]:
                    if ours[system][place + 1] != DASH:
                        assert ours[system][place : place + 3] == theirs[system][there : there + 3], (system, heading)
                        compared += 1
    assert compared >= 3
