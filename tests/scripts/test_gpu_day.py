"""`scripts/gpu_day.sh` rehearsed on a CPU: run, taken up again, reported."""

import json
import os
import subprocess
from pathlib import Path

from tests import fork_server

ROOT = Path(__file__).resolve().parents[2]


def gpu_day(*arguments: str, work: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(ROOT / "scripts/gpu_day.sh"), *arguments, "--rehearse"]
    quick = {"AGGDEC_VENV": str(fork_server.environment()), "OMP_NUM_THREADS": "1"}
    given = os.environ | {"AGGDEC_WORK": str(work)} | quick | environment
    return subprocess.run(command, capture_output=True, text=True, env=given, timeout=600)


def test_a_part_is_run_once_and_reported(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = gpu_day("run", "tests", work=tmp_path, OUT=str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "tests: 1 done\n"
    record = json.loads((out / "tests.json").read_text())
    (step,) = record["steps"]
    again = gpu_day("run", "tests", work=tmp_path)
    assert (again.stdout, again.stderr) == (done.stdout, "")
    page = gpu_day("report", work=tmp_path).stdout
    for words in (step["machine"]["processor"], "## Tests on the device", step["command"], "1 passed"):
        assert words in page


def test_a_folder_that_pack_did_not_make_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "data/precious"
    kept.parent.mkdir()
    kept.touch()
    command = ["bash", str(ROOT / "scripts/gpu_day.sh"), "pack", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"gpu_day: {tmp_path} is not empty")
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "precious"]
