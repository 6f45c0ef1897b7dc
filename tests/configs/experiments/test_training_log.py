"""What a training log says about acceptance and time."""

from pathlib import Path

import pytest
from experiments.training_log import read_validations

from fairseq_aggdec.errors import AggdecError

STAMP = "[2026-11-21 03:07:09,449]"


def trained(update: int, seconds: int) -> str:
    return (
        f"{STAMP}[train_inner][INFO] - epoch 001:    {update} / 1073 loss=3.163, nll_loss=1.649, glanced=0.067, "
        f"wps=6669, num_updates={update}, lr=1e-05, gnorm=0.952, clip=37, train_wall={seconds}, wall=227\n"
    )


def validated(update: int, accepted: float, rest: str = "") -> str:
    return (
        f"{STAMP}[valid][INFO] - epoch 001 | valid on 'valid' subset | loss 4.572 | nll_loss 3.242 | "
        f"accepted {accepted} | acc_1 0.88 | acc_10 0.262 | wps 20993.4 | bsz 250 | num_updates {update}{rest}\n"
    )


def log(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "hydra_train.log"
    path.write_text(f"{STAMP}[fairseq_cli.train][INFO] - begin training\n" + "".join(lines))
    return path


def test_resumed_training(tmp_path: Path) -> None:
    """Killed after update 200, before it was saved: what was done again counts, once."""
    lines = (trained(100, 10), validated(100, 1), trained(200, 90), validated(200, 1.25))
    again = (trained(200, 20), validated(200, 1.5), trained(300, 10), validated(300, 2))
    assert [(v.seconds, v.accepted) for v in read_validations(log(tmp_path, *lines, *again))] == [
        (10.0, 1.0),
        (30.0, 1.5),
        (40.0, 2.0),
    ]


def test_other_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match=r"hydra_train\.log: holds no validation with `accepted`"):
        read_validations(log(tmp_path, trained(100, 10)))
    with pytest.raises(AggdecError, match=r"no training time at update 150: .*log_interval"):
        read_validations(log(tmp_path, trained(100, 10), validated(150, 1.5)))
