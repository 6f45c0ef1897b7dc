"""What is recorded in docs/: lossless rows have greedy's output, and pages have the records' figures."""

import json
import re
from pathlib import Path

import pytest

from fairseq_aggdec.lab.bench.record import load_record
from tests.support.measured_tables import PAGES, RECORDS, ROOT, filled
from tests.support.pictures import pictures


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_recorded_lossless_row_has_greedys_output(path: Path) -> None:
    record = load_record(path)
    for run in record.runs:
        counts = run.counts
        assert not counts.differing, run.mode
        lossless = run.implementation == "fairseq_aggdec" and not re.search(
            r"\+\+|nar|beam", run.mode
        )
        if (
            lossless
            and counts.identical is not None
            and counts.compared_with == run.precision
        ):
            same = counts.identical + (counts.near_ties or 0)
            assert same >= counts.sentences, run.mode


def test_recorded_verifications_have_passed() -> None:
    for path in (ROOT / "docs" / "verify").glob("*.json"):
        assert json.loads(path.read_text("utf-8"))["passed"], path


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_of_a_page_are_those_of_the_records(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert filled(text) == text, (
        "python -m tests.support.measured_tables writes them anew"
    )


@pytest.mark.parametrize("path", pictures())
def test_a_picture_shows_what_is_recorded(path: str) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert re.search(rf"!\[[^]]+\]\({path}\)", readme)
    assert (ROOT / path).read_text("utf-8") == pictures()[path], (
        "python -m tests.support.measured_tables draws it anew"
    )


def test_every_record_is_read_by_a_page() -> None:
    pages = "".join((ROOT / page).read_text("utf-8") for page in PAGES)
    assert [path.name for path in RECORDS if path.stem not in pages] == []
