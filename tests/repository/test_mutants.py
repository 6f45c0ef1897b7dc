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
FAULTS = yaml.safe_load((ROOT / "tests/support/mutants.yaml").read_text("utf-8"))
TRIED = FAULTS if "ALL_FAULTS" in os.environ else FAULTS[:1]
FOLDERS = ("configs", "tests", "scripts", "docs")
"""what is copied beside the package; a fault's file that names none of them is one of the package"""


def faulty_file(fault: dict[str, str], root: Path) -> Path:
    in_package = fault["file"].split("/")[0] not in FOLDERS
    return root / ("fairseq_aggdec" if in_package else "") / fault["file"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What tests may read of the repository."""
    folder = tmp_path_factory.mktemp("copy")
    not_copied = shutil.ignore_patterns("__pycache__")
    for name in ("fairseq_aggdec", *FOLDERS):
        shutil.copytree(ROOT / name, folder / name, ignore=not_copied)
    for path in [ROOT / "pyproject.toml", *ROOT.glob("*.md")]:
        shutil.copy(path, folder)
    return folder


@cache
def passes(tests: str, folder: Path, fault: str = "") -> bool:
    """Whether the tests pass with the code in `folder`, which has this fault."""
    command = [sys.executable, *"-m pytest -qx -p no:cacheprovider".split()]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        # the copy has no environment of its own: its scripts take the Python in the path
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [*command, *tests.split()],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    # more: no test has run; less than 0: the process has died
    assert done.returncode <= 1, done.stdout + done.stderr
    return done.returncode == 0


def test_every_fault_can_be_put_into_the_code_and_names_tests() -> None:
    for fault in FAULTS:
        text = faulty_file(fault, ROOT).read_text("utf-8")
        assert text.count(fault["old"]) == 1, fault
        for test in fault["tests"].split():
            file, _, name = test.partition("::")
            tests = (ROOT / file).read_text("utf-8")
            assert f"def {name.partition('[')[0]}" in tests, fault


@pytest.mark.parametrize("fault", TRIED, ids=lambda fault: fault["fault"])
def test_a_fault_is_seen(fault: dict[str, str], copy: Path) -> None:
    """The first is tried in every run: it once reached users, and once survived the suite."""
    assert passes(fault["tests"], copy), "fails without any fault"
    path = faulty_file(fault, copy)
    text = path.read_text("utf-8")
    path.write_text(text.replace(fault["old"], fault["new"]), "utf-8")
    try:
        assert not passes(fault["tests"], copy, fault["fault"])
    finally:
        path.write_text(text, "utf-8")
