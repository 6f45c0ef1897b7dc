"""The list of experiments and their stand-ins, by scripts/reproduce.sh."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def reproduce(*arguments: str, work: Path) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(ROOT / "scripts/reproduce.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"AGGDEC_WORK": str(work)})


def test_reproduce_lists_every_experiment(tmp_path: Path) -> None:
    done = reproduce("--list", work=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = {line.split()[0] for line in done.stdout.splitlines()[2:] if not line.startswith(" ")}
    there = {path.name for path in (ROOT / "configs").iterdir() if path.is_dir() and path.name != "shared"}
    assert there <= shown


def test_small_runs_the_stand_in_of_an_experiment_that_there_is(tmp_path: Path) -> None:
    for words, status, said in (
        (("wmt16_ro_en", "no-such-stage"), 2, "stage no-such-stage; configs/tatoeba_de_en has: prepare teacher"),
        (("mucgec_small",), 1, "--small: mucgec_small is small itself"),
        (("shared",), 2, "wmt14_en_de"),
    ):
        done = reproduce(*words, "--small", work=tmp_path)
        assert (done.returncode, said in done.stderr) == (status, True), done.stderr
    assert " shared " not in done.stderr
