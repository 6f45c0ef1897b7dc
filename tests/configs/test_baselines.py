"""The non-autoregressive baselines of the small experiment: they fit the verifier and learn."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import tasks

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from tests.configs.composing import compose
from tests.configs.recording import recorded

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


def test_the_stage_trains_them() -> None:
    given, work = (
        recorded("tatoeba_en_de", "baselines", BASELINE_UPDATES="1200"),
        Path("work/tatoeba_en_de"),
    )

    hydra = [command for command in given if command[0] == "fairseq-hydra-train"]
    trainings = [
        dict(word.split("=", 1) for word in command if "=" in word) for command in hydra
    ]
    assert [int(training["optimization.max_update"]) for training in trainings] == [
        1200,
        1200,
        400,
        300,
    ]
    starts = [training["checkpoint.finetune_from_model"] for training in trainings]
    of_verifier = [str(work / f"baselines/{name}/start.pt") for name in NAMES[:3]]
    assert starts == [*of_verifier, str(work / "baselines/nat/model.pt")]

    # as they are timed, for the scores; papers/001, Table 9: CMLM with a length beam of 3, in 4 and in 10 passes;
    # fairseq does not count the first one
    decoded = [command for command in given if command[0] == "fairseq-generate"]
    wanted = {
        "nat": ("0", "1"),
        "inat": ("9", "1"),
        "cmlm10": ("9", "5"),
        "levt": ("9", "1"),
        "cmlm4-length3": ("3", "3"),
        "cmlm10-length3": ("9", "3"),
    }
    for command, (label, passes) in zip(decoded, wanted.items(), strict=True):
        options = dict(pairwise(command))
        assert options["--results-path"] == str(work / f"decode/test/{label}")
        assert (
            options["--iter-decode-max-iter"],
            options["--iter-decode-with-beam"],
        ) == passes
        assert "--iter-decode-force-max-iter" in command
