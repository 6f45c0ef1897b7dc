"""`aggdec drafter`: from a trained model to a measured drafter, stopped on the way."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fairseq_aggdec.cli import train
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.train.drafter import fairseq_train, plan, trial
from fairseq_aggdec.train.drafter.folder import NAME
from fairseq_aggdec.train.exporting import with_draft_length
from tests.cli.correction import TRAINED_ON
from tests.support.helpers import ToyModel, refused_with, stamps

LARGEST = 5
UPDATES = 16
STOPPED_AT = 6


def command(model: ToyModel, out: Path, options: str) -> list[str]:
    files = f"--verifier {model.checkpoint} --data {model.data} --out {out}"
    return f"drafter {files} --cpu --block-size {LARGEST} {options}".split()


def stopping(logged: Any) -> Any:
    """`fairseq_train.logged`, and Ctrl-C after some updates."""

    def stopped(*arguments: Any) -> Iterator[Any]:
        with closing(logged(*arguments)) as lines:
            for kind, figures in lines:
                yield kind, figures
                if int(figures.get("num_updates", 0)) >= STOPPED_AT:
                    raise KeyboardInterrupt

    return stopped


def test_a_stopped_run_goes_on_to_a_measured_drafter(
    correction_model: ToyModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = command(correction_model, tmp_path, f"--updates {UPDATES}")
    with monkeypatch.context() as patch:
        # but not that of the trial
        patch.setattr(fairseq_train, "logged", stopping(trial.logged))
        with pytest.raises(SystemExit) as exit_:
            aggdec(words)
    assert exit_.value.code == 130
    printed = capsys.readouterr().out
    assert re.search(
        rf"distil +about .* minutes? .*{TRAINED_ON} of {TRAINED_ON} training sentences, translated by",
        printed,
    )
    assert re.search(rf"train +about .* minutes? .*{UPDATES} updates in", printed)
    assert re.search(
        r"faster than greedy, gad will need about \d+\.\d tokens an iteration, with drafts of 4",
        printed,
    )
    assert not (tmp_path / "drafter.pt").exists()
    distilled = stamps(tmp_path / "distilled")
    assert distilled

    aggdec(words)
    printed = capsys.readouterr().out
    assert stamps(tmp_path / "distilled") == distilled
    loaded = re.findall(
        r"Loaded checkpoint .*checkpoint_last.pt \(epoch \d+ @ (\d+) updates\)",
        log := _log(tmp_path),
    )
    assert len(loaded) == 1
    assert STOPPED_AT - 1 <= int(loaded[0]) < UPDATES
    assert f'"num_updates": "{UPDATES}"' in log
    rows = re.findall(
        r"^gad +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)x$", printed, re.MULTILINE
    )
    assert [int(size) for size, *_ in rows] == [2, 3, 4, 5]
    for _, tokens, needed, speed in rows:
        assert float(tokens) >= 1
        assert float(needed) == pytest.approx(float(tokens) / float(speed), rel=0.05)
    assert "fairseq-generate" in printed
    assert _drafted_by(tmp_path) == _fastest(tmp_path)

    done = stamps(tmp_path)
    aggdec(words)
    assert capsys.readouterr().out == printed
    assert stamps(tmp_path) == done
    # as if it had been stopped before the length was kept
    untold = read_checkpoint(tmp_path / "drafter.pt")
    torch.save(with_draft_length(untold, 1), tmp_path / "drafter.pt")
    aggdec(words)
    assert _log(tmp_path) == log
    assert _drafted_by(tmp_path) == _fastest(tmp_path)
    with refused_with(rf"was begun with {UPDATES} updates in .*give more than that"):
        aggdec([*words, "--updates", "9"])
    with refused_with(
        r"other settings \(decoder_layers: 1 now, 2 there\); go on with those"
    ):
        aggdec([*words, "--decoder-layers", "1"])
    capsys.readouterr()
    aggdec([*words, "--updates", str(2 * UPDATES)])
    assert (
        f"What {2 * UPDATES} updates will bring is not known" in capsys.readouterr().out
    )
    assert f'"num_updates": "{2 * UPDATES}"' in _log(tmp_path)
    assert stamps(tmp_path / "distilled") == distilled
    assert _drafted_by(tmp_path) == _fastest(tmp_path)


def test_when_the_minutes_are_over_every_stage_ends(
    correction_model: ToyModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They are over at once here, and it would train for days."""
    monkeypatch.setattr(
        train, "time", SimpleNamespace(monotonic=lambda: time.monotonic() - 60)
    )
    monkeypatch.setattr(plan, "_FEWEST_UPDATES", 1_000_000)
    aggdec(command(correction_model, tmp_path, "--minutes 1"))
    printed, said = capsys.readouterr()
    assert re.search(
        r"--minutes are over: [\d,]+ of 1,000,000 updates were trained", said
    )
    assert re.search(rf"^gad +{LARGEST} ", printed, re.MULTILINE)
    assert _drafted_by(tmp_path) == _fastest(tmp_path)


def _drafted_by(folder: Path) -> int:
    """How many tokens the drafter has decoding draft."""
    model = read_checkpoint(folder / "drafter.pt")["cfg"]["model"]
    return dict(model if isinstance(model, Mapping) else vars(model))[
        "decoding_block_size"
    ]


def _fastest(folder: Path) -> int:
    measured = json.loads((folder / NAME).read_text())["measured"]
    return max(measured, key=lambda one: one["speed_up"])["block_size"]


def _log(folder: Path) -> str:
    return (folder / "train.log").read_text("utf-8")
