"""What is recorded in docs/: lossless rows have greedy's output, and what is older than the engine is marked."""

import re
import subprocess
from pathlib import Path

import pytest

from fairseq_aggdec.lab.benchmarking.record import load_record
from tests.measured_tables import RECORDS, ROOT, code_of, git


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_recorded_lossless_row_has_greedys_output(path: Path) -> None:
    record = load_record(path)
    assert {run.mode: run.differing for run in record.runs if run.differing} == {}
    for run in record.runs:
        lossless = run.implementation == "fairseq_aggdec" and not re.search(r"\+\+|nar|beam", run.mode)
        if lossless and run.identical is not None and run.compared_with == run.precision:
            assert run.identical + (run.near_ties or 0) >= run.sentences, run.mode


def test_records_are_short() -> None:
    """A record has at most 200 lines, and all JSON in docs together 0.6 MB."""
    files = list((ROOT / "docs").rglob("*.json"))
    assert [path for path in files if path.read_bytes().count(b"\n") > 200] == []
    assert sum(path.stat().st_size for path in files) < 600_000


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
