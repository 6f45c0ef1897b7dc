"""The distillation stage on toy data: shards side by side, gathered, and nothing to do the second time."""

import shutil
from pathlib import Path

from tests.helpers import ToyModel
from tests.scripts.checkout import run


def distill(work: Path, *options: str) -> str:
    """Runs the script; returns what it says."""
    arguments = ["tatoeba_en_de", "--cpu", "--beam", "1", "--max-len-b", "3", *options]
    return run("distill", *arguments, data=work, work=work).stderr


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
