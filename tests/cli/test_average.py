"""Tests of `aggdec average`."""

import argparse
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.train.averaging import last_checkpoints


def save(path: Path, value: float, updates: int = 2, /, **other: torch.Tensor) -> None:
    state = {
        "args": argparse.Namespace(arch="x"),
        "model": {"weight": torch.full((2,), value, dtype=torch.bfloat16), **other},
        "optimizer_history": [{"num_updates": 1}, {"num_updates": updates}],
        "last_optimizer_state": {"large": torch.zeros(1000)},
        "extra_state": {"epoch": 7, "train_iterator": {"epoch": 7}},
    }
    torch.save(state, path)


def average(folder: Path, last: int) -> Path:
    aggdec(
        [
            "average",
            str(folder),
            "--last",
            str(last),
            "--output",
            str(folder / "model.pt"),
        ]
    )
    return folder / "model.pt"


def test_mean_of_the_last_checkpoints(tmp_path: Path) -> None:
    """What was not trained stays to the bit, as a frozen encoder is known by a hash; a counter has its last value."""
    frozen = torch.randn(200, generator=torch.Generator().manual_seed(1))
    fingerprint = torch.tensor([0, 1, 255, 2**62 + 1])
    # by number, not by name
    for update, value in ((500, 100.0), (1000, 1.0), (2000, 3.0), (10000, 5.0)):
        other = {
            "frozen": frozen,
            "fingerprint": fingerprint,
            "counter": torch.tensor(update),
        }
        save(tmp_path / f"checkpoint_1_{update}.pt", value, **other)
    save(tmp_path / "checkpoint_best.pt", 7.0)
    state = read_checkpoint(average(tmp_path, last=3))
    weights = state["model"]
    assert (weights["weight"].tolist(), weights["weight"].dtype) == (
        [3, 3],
        torch.float32,
    )
    assert weights["frozen"].equal(frozen)
    assert weights["fingerprint"].equal(fingerprint)
    assert weights["counter"].tolist() == 10000
    assert (
        state["last_optimizer_state"],
        state["extra_state"]["epoch"],
        state["args"].arch,
    ) == (None, 0, "x")


def test_the_last_checkpoints_of_a_training_that_numbers_some_by_epochs_and_some_by_updates(
    tmp_path: Path,
) -> None:
    """fairseq-train does with --save-interval-updates; the last of an epoch can have a name of both kinds."""
    for epoch in (8, 9, 10):
        save(tmp_path / f"checkpoint{epoch}.pt", epoch, epoch * 1000)
    save(tmp_path / "checkpoint_9_9000.pt", 9.0, 9000)
    save(tmp_path / "checkpoint_10_9500.pt", 9.5, 9500)
    latest = [path.name for path in last_checkpoints(tmp_path, 3)]
    assert latest == [
        "checkpoint_9_9000.pt",
        "checkpoint_10_9500.pt",
        "checkpoint10.pt",
    ]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (None, "holds 1 numbered checkpoints"),
        ({}, r"checkpoint_1_600\.pt has other parameters"),
        (
            {"fingerprint": torch.tensor([1, 3])},
            r"checkpoint_1_600\.pt: `fingerprint` differs .*checkpoint_1_500\.pt",
        ),
    ],
)
def test_what_has_no_mean_is_refused(
    tmp_path: Path, other: dict[str, torch.Tensor] | None, message: str
) -> None:
    save(tmp_path / "checkpoint_1_500.pt", 1.0, fingerprint=torch.tensor([1, 2]))
    if other is not None:
        save(tmp_path / "checkpoint_1_600.pt", 1.0, **other)
    with pytest.raises(AggdecError, match=message):
        average(tmp_path, last=2)
    assert not (tmp_path / "model.pt").exists()
