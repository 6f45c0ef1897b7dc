"""The list of experiments and their stand-ins, on the command line and by scripts/reproduce.sh."""

import os
import subprocess
from pathlib import Path

import pytest

from fairseq_aggdec.cli import experiments
from fairseq_aggdec.errors import AggdecError

ROOT = Path(__file__).resolve().parents[2]
FULL = "title: t\nanswers: [Table 1, Table 2]\nsmall: [little prepare train]\ndisk_gb: 3\ngpu_hours: 1200\n"


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    for name, about in (("big", FULL), ("little", "title: t\nanswers: [x]\ndisk_gb: 1\ngpu_hours: 0\ncpu_hours: 2\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "about.yaml").write_text(about)
    (tmp_path / "shared").mkdir()
    return tmp_path


def test_list(configs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiments.main(["list", str(configs)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["big", "little"]
    for word in ("Table 1; Table 2", "little", "3", "1,200 GPU"):
        assert word in lines[2]


def test_small(configs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiments.main(["small", str(configs), "big"])
    assert capsys.readouterr().out == "little prepare train\n"
    with pytest.raises(AggdecError, match="little is small itself"):
        experiments.main(["small", str(configs), "little"])
    (configs / "big/about.yaml").write_text(FULL.replace("small: [little prepare train]", "no_small: there is no data"))
    with pytest.raises(AggdecError, match="--small: big has none: there is no data"):
        experiments.main(["small", str(configs), "big"])


def reproduce(*arguments: str, work: Path) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(ROOT / "scripts/reproduce.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"AGGDEC_WORK": str(work)})


def test_reproduce_lists_every_experiment(tmp_path: Path) -> None:
    done = reproduce("--list", work=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = {line.split()[0] for line in done.stdout.splitlines()[2:] if not line.startswith(" ")}
    there = {path.name for path in (ROOT / "configs").iterdir() if path.name != "shared"}
    assert there <= shown


def test_small_runs_the_stand_in_of_an_experiment_that_there_is(tmp_path: Path) -> None:
    done = reproduce("wmt16_ro_en", "no-such-stage", "--small", work=tmp_path)
    assert done.returncode == 2
    assert "unknown stage no-such-stage; configs/tatoeba_de_en has: prepare teacher" in done.stderr
    done = reproduce("mucgec_small", "--small", work=tmp_path)
    assert done.returncode == 1
    assert "--small: mucgec_small is small itself" in done.stderr
    done = reproduce("shared", "--small", work=tmp_path)
    assert done.returncode == 2
    assert "wmt14_en_de" in done.stderr
    assert " shared " not in done.stderr
