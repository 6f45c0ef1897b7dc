"""The distillation stage on toy data: shards side by side, gathered, and nothing to do the second time."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.helpers import ToyModel

ROOT = Path(__file__).resolve().parents[2]


def distill(work: Path, *options: str) -> str:
    """Runs the script; returns what it says."""
    environment = os.environ | {"AGGDEC_WORK": str(work), "OMP_NUM_THREADS": "1"}
    command = ["bash", str(ROOT / "scripts/distill.sh"), "tatoeba_en_de", "--cpu", "--beam", "1", "--max-len-b", "3"]
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def test_shards_side_by_side(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    folder = tmp_path / "tatoeba_en_de"
    (folder / "teacher").mkdir(parents=True)
    shutil.copytree(toy_model_dir.data, folder / "data-bin")
    shutil.copyfile(toy_model_dir.checkpoint, folder / "teacher/model.pt")
    distill(tmp_path, "--shards", "2")
    output = folder / "distilled/data-bin"
    assert {"dict.src.txt", "train.src-tgt.tgt.bin", "valid.src-tgt.tgt.bin"} <= {
        path.name for path in output.iterdir()
    }
    assert len(list((folder / "distilled/data-bin.shards").iterdir())) == 2
    stamp = output.stat().st_mtime_ns
    assert f"{output} is complete" in distill(tmp_path)
    assert output.stat().st_mtime_ns == stamp
