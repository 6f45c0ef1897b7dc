"""The non-autoregressive baselines of the small experiment: they fit the verifier and learn."""

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import tasks

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from tests.configs.composing import compose

NAMES = ("nat", "cmlm", "levt", "inat")


def composed(name: str, data: Path) -> Any:
    return compose(
        "tatoeba_en_de",
        name,
        (f"task.data={data}", "task.source_lang=src", "task.target_lang=tgt"),
    )


@pytest.fixture(scope="module")
def verifier(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = composed("verifier", toy_data)
    torch.manual_seed(1)
    model = tasks.setup_task(config.task).build_model(config.model)
    path = tmp_path_factory.mktemp("verifier") / "verifier.pt"
    torch.save({"args": None, "cfg": {"model": {}}, "model": model.state_dict()}, path)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_they_begin_with_the_verifier_and_learn(
    name: str, verifier: Path, toy_data: Path, tmp_path: Path
) -> None:
    """The models of the small experiment in the verifier's size, on toy data: one update."""
    config = composed(name, toy_data)
    aggdec(
        [
            "nat-start",
            str(verifier),
            config.model._name,
            "--output",
            str(tmp_path / "start.pt"),
        ]
    )
    task = tasks.setup_task(config.task)
    model = task.build_model(config.model)
    model.load_state_dict(read_checkpoint(tmp_path / "start.pt")["model"], strict=True)
    criterion = task.build_criterion(config.criterion)
    task.load_dataset("valid")
    batch = task.dataset("valid").collater(
        [task.dataset("valid")[number] for number in range(4)]
    )

    class Backward:
        def backward(self, loss: torch.Tensor) -> None:
            loss.backward()

    loss, _, logged = task.train_step(batch, model, criterion, Backward(), 0)
    assert loss.isfinite()
    assert logged["nll_loss"] > 0
    without = [
        path
        for path, weight in model.named_parameters()
        if weight.requires_grad and weight.grad is None
    ]
    assert not without
