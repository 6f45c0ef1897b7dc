"""fairseq-train with BLEU on validation, fairseq-validate, and torch.hub's interface."""

import re
from functools import partial
from pathlib import Path

import pytest
from fairseq.models.transformer import TransformerModel

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.cli.correction import MODEL, PLUGIN, VALIDATED, WORDS, Process, at_once
from tests.support.helpers import ToyModel, run_cli


def train_on(model: ToyModel, decoding: str, folder: Path) -> Process:
    """Two epochs from `model`, with BLEU after each."""
    task = ["--task", "aggressive_translation", "--decoding", decoding, "--user-dir", PLUGIN]
    bleu = ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_a": 1.2, "max_len_b": 10}']
    architecture = MODEL[: MODEL.index("--save-interval-updates")]
    training = "--optimizer adam --clip-norm 1 --max-tokens 2000 --max-epoch 2 --seed 1 --cpu --no-progress-bar".split()
    saving = ["--save-dir", folder, "--no-epoch-checkpoints", "--finetune-from-model", model.checkpoint]
    return run_cli("fairseq-train", model.data, *task, *bleu, *architecture, *training, *saving)


def figures(text: str, name: str) -> list[float]:
    """Values of a figure in the lines about validation."""
    return [float(value) for value in re.findall(rf"valid on 'valid' subset.*? \| {name} ([\d.]+)", text)]


@pytest.fixture(scope="module")
def trained(correction_model: ToyModel, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Process], Path]:
    """Training with the plugin's decoding and with fairseq's; the folder of the former."""
    folders = [tmp_path_factory.mktemp(decoding) for decoding in ("iad", "beam")]
    runs = [partial(train_on, correction_model, decoding, folder)
            for decoding, folder in zip(("iad", "beam"), folders, strict=True)]  # fmt: skip
    return at_once(*runs), folders[0]


def test_bleu_on_validation_is_that_of_beam_one(trained: tuple[list[Process], Path]) -> None:
    """After each epoch: the weights have changed in between."""
    iad, beam = (figures(process.stdout + process.stderr, "bleu") for process in trained[0])
    assert len(beam) == 2
    assert beam[0] != beam[1]
    assert iad == beam
    assert f"--decoding iad: {VALIDATED} sentences" in trained[0][0].stdout + trained[0][0].stderr


def test_validation_by_a_beam(correction_model: ToyModel, trained: tuple[list[Process], Path]) -> None:
    """The decoding mode and the beam of the BLEU are fairseq-validate's own, not those of the training."""
    options = ["--path", trained[1] / "checkpoint_last.pt", "--user-dir", PLUGIN, "--task", "aggressive_translation"]
    options += ["--max-tokens", 2000, "--eval-bleu-args", '{"beam": 4, "max_len_b": 20}', "--decoding"]
    runs = [partial(run_cli, "fairseq-validate", correction_model.data, *options, decoding)
            for decoding in ("aggressive-beam", "beam")]  # fmt: skip
    ours, stock = (process.stdout + process.stderr for process in at_once(*runs))
    assert figures(ours, "bleu") == figures(stock, "bleu") != []
    assert f"--decoding aggressive-beam: {VALIDATED} sentences" in ours
    assert "--decoding" not in stock


def test_hub(correction_model: ToyModel) -> None:
    """torch.hub's interface, by copies and by a beam."""
    folder, name = correction_model.checkpoint.parent, correction_model.checkpoint.name
    load = partial(TransformerModel.from_pretrained, str(folder), name, str(correction_model.data))
    stock = load()
    hub, beams = (
        load(task={"_name": "aggressive_translation", "decoding": decoding}) for decoding in ("iad", "aggressive-beam")
    )
    sentences = [" ".join(WORDS[i : i + 7]) + f" {WORDS[i]}x" for i in range(0, 30, 5)] + ["", "ba", "ba </s> de"]
    assert hub.translate(sentences) == stock.translate(sentences, beam=1)
    assert beams.translate(sentences, beam=5) == stock.translate(sentences, beam=5)
    [hypothesis] = hub.generate(hub.encode(sentences[0]))
    assert 1 <= hypothesis["steps"] < len(hypothesis["tokens"])
    assert isinstance(hub.task.build_generator(hub.models, hub.cfg.generation), AggressiveGenerator)
    with pytest.raises(AggdecError, match="--sampling"):
        hub.translate(sentences, sampling=True)
