import argparse
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli import average
from fairseq_aggdec.compat import read_checkpoint


def save(path: Path, value: float, **other: torch.Tensor) -> None:
    state = {
        "args": argparse.Namespace(arch="x"),
        "model": {"weight": torch.full((2,), value, dtype=torch.bfloat16), "count": torch.tensor([3]), **other},
        "optimizer_history": [{"num_updates": 1}, {"num_updates": 2}],
        "last_optimizer_state": {"large": torch.zeros(1000)},
    }
    torch.save(state, path)


def test_mean_of_the_last_checkpoints(tmp_path: Path) -> None:
    for update, value in ((500, 100.0), (1000, 1.0), (10000, 2.0)):  # by number, not by name
        save(tmp_path / f"checkpoint_1_{update}.pt", value)
    save(tmp_path / "checkpoint_best.pt", 7.0)
    output = tmp_path / "model.pt"
    assert average.main([str(tmp_path), "--last", "2", "--output", str(output)]) == 0
    state = read_checkpoint(output)
    assert state["model"]["weight"].tolist() == [1.5, 1.5]
    assert state["model"]["weight"].dtype == torch.float32
    assert state["model"]["count"].tolist() == [3]
    assert state["last_optimizer_state"] is None
    assert state["args"].arch == "x"


def test_epoch_checkpoints(tmp_path: Path) -> None:
    for epoch in (1, 2, 10):
        save(tmp_path / f"checkpoint{epoch}.pt", float(epoch))
    assert [path.name for path in average.last_checkpoints(tmp_path, 2)] == ["checkpoint2.pt", "checkpoint10.pt"]


def test_too_few_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "checkpoint_1_500.pt", 1.0)
    assert average.main([str(tmp_path), "--last", "2", "--output", str(tmp_path / "model.pt")]) == 1
    assert "holds 1 numbered checkpoints" in capsys.readouterr().err
    assert not (tmp_path / "model.pt").exists()


def test_other_parameters_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "checkpoint_1_500.pt", 1.0)
    save(tmp_path / "checkpoint_1_600.pt", 1.0, other=torch.zeros(1))
    assert average.main([str(tmp_path), "--last", "2", "--output", str(tmp_path / "model.pt")]) == 1
    assert "checkpoint_1_600.pt has other parameters" in capsys.readouterr().err
