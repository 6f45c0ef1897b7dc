"""What is recorded in docs/: lossless rows have greedy's output, and what is older than the engine is marked."""

import re
import subprocess
from pathlib import Path

import pytest

from fairseq_aggdec.lab.benchmarking.modes import Mode
from fairseq_aggdec.lab.benchmarking.record import Record, Run, load_record
from tests.measured_tables import PAGES, RECORDS, RECORDS_PAGE, ROOT, code_of, filled, git, marked_older


def mode_of(run: Run) -> Mode | None:
    return Mode.parse(run.mode) if run.implementation == "fairseq_aggdec" else None


def faults(record: Record) -> list[str]:
    """Lossless rows with sentences that are not greedy's, or of a beam search not fairseq's, near-ties aside."""
    found = []
    for run in record.runs:
        mode = mode_of(run)
        if mode is None or not (mode.lossless or mode.searches_as):
            continue
        beside = [other for other in record.at(run.batch_size) if other.precision == run.precision]
        # where greedy was not measured, fairseq's own search is the next best thing
        names = [mode.searches_as.name] if mode.searches_as else ["greedy", "beam1"]
        references = [other for name in names for other in beside if other.mode.partition("@")[0] == name]
        greedy = references[0] if references else run
        near_ties = {difference.sentence for difference in run.differing if difference.near_tie}
        differing = {
            number for number, pair in enumerate(zip(run.outputs, greedy.outputs, strict=True)) if pair[0] != pair[1]
        }
        differing |= {difference.sentence for difference in run.differing}  # from what decoded beside it and has no row
        if differing - near_ties:
            found.append(f"{run.mode} at batch size {run.batch_size}: sentences {sorted(differing - near_ties)}")
    return found


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_recorded_lossless_row_has_greedys_output(path: Path) -> None:
    assert faults(load_record(path)) == []


def has_history() -> bool:
    try:
        return git("rev-parse", "--is-shallow-repository") == "false"
    except (OSError, subprocess.CalledProcessError):
        return False


@pytest.mark.skipif(not has_history(), reason="no git history here to compare commits with")
def test_only_its_code_makes_a_file_of_the_engine_another_one() -> None:
    bare = code_of("a.py", b"def f(x):\n    return [x,\n            1]\n")
    assert code_of("a.py", b'"""A."""\n\ndef f(x):  # of x\n    """B."""\n    return [x, 1]\n') == bare
    assert code_of("a.py", b"def f(x):\n    return [x, 2]\n") != bare
    error, other = (b"def f(x):\n    raise ValueError(f'%s {x}')\n" % text for text in (b"no", b"not"))
    assert code_of("a.py", error) == code_of("a.py", other) != code_of("a.py", other.replace(b"Value", b"Type"))
    assert code_of("a.c", b"/* A */ int x;") != code_of("a.c", b"int x;")


def test_records_older_than_the_engine_are_marked() -> None:
    """Measure again, or mark: `python -m tests.measured_tables` writes the list."""
    text = (ROOT / RECORDS_PAGE).read_text(encoding="utf-8")
    assert marked_older(text) == text


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_measurements_are_those_of_their_records(page: str) -> None:
    """What `python -m tests.measured_tables` writes; each record that a page names stands with its commit."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert filled(text) == text
    assert re.findall(r"`[\w-]+_cpu\.json`(?!\s\(commit\s)", text) == []
