"""Puts seeded faults (mutants.yaml) into copies of the package, where the tests named beside them must fail."""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
Fault = dict[str, str]
"""`fault`, a description; `file`; `old` and `new` text; `tests`, separated by blanks"""
FAULTS: list[Fault] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def misfits() -> list[str]:
    """A line for each fault that cannot be put into the code, and for each file of tests that is not there."""
    found = []
    for fault in FAULTS:
        path = ROOT / "fairseq_aggdec" / fault["file"]
        count = path.read_text(encoding="utf-8").count(fault["old"]) if path.is_file() else 0
        if count != 1:
            found.append(f"{fault['fault']}: {fault['file']} has {count} times {fault['old']!r}")
        missing = [test for test in fault["tests"].split() if not (ROOT / test.partition("::")[0]).is_file()]
        found += [f"{fault['fault']}: there is no {test}" for test in missing]
    return found


def is_killed(fault: Fault) -> bool:
    """Whether the named tests fail with the fault in the code; without it they must pass."""
    if not _pass(fault["tests"]):
        raise RuntimeError(f"{fault['tests']}: fails without any fault")
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        shutil.copytree(ROOT / "fairseq_aggdec", f"{folder}/fairseq_aggdec")
        path = Path(folder, "fairseq_aggdec", fault["file"])
        path.write_text(path.read_text(encoding="utf-8").replace(fault["old"], fault["new"]), encoding="utf-8")
        return not _run(folder, fault["tests"])


@cache
def _pass(tests: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        shutil.copytree(ROOT / "fairseq_aggdec", f"{folder}/fairseq_aggdec")
        return _run(folder, tests)


def _run(folder: str, tests: str) -> bool:
    """Whether tests pass beside the copy of the package in `folder`."""
    shutil.copytree(ROOT / "tests", f"{folder}/tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    command = [sys.executable, "-m", "pytest", "--quiet", "--exitfirst", "--no-header", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([*command, *tests.split()], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode > 1:  # 1: tests have failed, below 0: the process died; all else says nothing about the fault
        raise RuntimeError(f"{tests}: pytest ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.returncode == 0


def main(words: list[str]) -> int:
    """Print a line for each fault whose description has one of the words; returns 1 where one survives, else 0."""
    if found := misfits():
        print("\n".join(found))
        return 1
    chosen = [fault for fault in FAULTS if not words or any(word in fault["fault"] for word in words)]
    survived = 0
    for fault in chosen:
        killed = is_killed(fault)
        survived += not killed
        print(f"{'killed  ' if killed else 'SURVIVES'} {fault['fault']} ({fault['file']})", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} killed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
