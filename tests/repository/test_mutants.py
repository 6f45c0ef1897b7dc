"""Seeded faults (tests/support/mutants.yaml): with one in the code, a test that is named beside it must fail.

`bash scripts/mutants.sh` tries all of them, for an hour or so; the suite tries the first one.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
FAULTS = yaml.safe_load(
    (ROOT / "tests/support/mutants.yaml").read_text(encoding="utf-8")
)
TRIED = FAULTS if "ALL_FAULTS" in os.environ else FAULTS[:1]
COPIED = ("fairseq_aggdec", "tests", "configs", "scripts")
"""the folders that a fault's file may be in; where it names none of the others, it is in the first"""


def faulty_file(fault: dict[str, str], root: Path) -> Path:
    is_elsewhere = fault["file"].split("/")[0] in COPIED[1:]
    return root / ("" if is_elsewhere else COPIED[0]) / fault["file"]


@cache
def passes(tests: str, folder: Path) -> bool:
    """Whether the tests pass with the code in `folder`."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-qx",
        "-p",
        "no:cacheprovider",
        *tests.split(),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )
    # more: no test has run; less than 0: the process has died
    assert done.returncode <= 1, done.stdout + done.stderr
    return done.returncode == 0


def test_every_fault_can_be_put_into_the_code_and_names_tests() -> None:
    for fault in FAULTS:
        text = faulty_file(fault, ROOT).read_text(encoding="utf-8")
        assert text.count(fault["old"]) == 1, fault
        assert all(
            (ROOT / test.partition("::")[0]).is_file()
            for test in fault["tests"].split()
        ), fault


@pytest.mark.parametrize("fault", TRIED, ids=lambda fault: fault["fault"])
def test_a_fault_is_seen(fault: dict[str, str], tmp_path: Path) -> None:
    """The first is tried in every run: it once reached users, and once survived the suite."""
    assert passes(fault["tests"], ROOT), "fails without any fault"
    for name in COPIED:
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = faulty_file(fault, tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
    assert not passes(fault["tests"], tmp_path)
