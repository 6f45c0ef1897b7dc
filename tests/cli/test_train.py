"""fairseq-train with BLEU on validation, fairseq-validate, and torch.hub's interface."""

import re
from functools import partial
from pathlib import Path

import pytest
from fairseq.models.transformer import TransformerModel

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.cli.correction import MODEL, PLUGIN, VALIDATED, WORDS, Process, at_once
from tests.support.helpers import ToyModel, run_cli

BLEU = ["--user-dir", PLUGIN, "--task", "aggressive_translation", "--max-tokens", 2000]
BLEU += ["--eval-bleu-args", '{"beam": 2, "max_len_b": 10}']


def train_on(model: ToyModel, decoding: str, folder: Path) -> Process:
    """Two epochs from `model`, with BLEU after each."""
    architecture = MODEL[: MODEL.index("--save-interval-updates")]
    training = "--eval-bleu --optimizer adam --clip-norm 1 --max-epoch 2 --seed 1 --cpu --no-progress-bar".split()
    saving = ["--save-dir", folder, "--no-epoch-checkpoints", "--finetune-from-model", model.checkpoint]
    return run_cli("fairseq-train", model.data, *BLEU, "--decoding", decoding, *architecture, *training, *saving)


def bleu(process: Process) -> list[float]:
    """What was validated; the mode has decoded all sentences, if it is one of the plugin's."""
    log = process.stdout + process.stderr
    modes = re.findall(rf"--decoding (\S+): {VALIDATED} sentences", log)
    assert modes or "--decoding" not in log
    return [float(value) for value in re.findall(r"valid on 'valid' subset.*? \| bleu ([\d.]+)", log)]


def test_bleu_on_validation_is_that_of_the_beam(correction_model: ToyModel, tmp_path: Path) -> None:
    """After each epoch, as the weights have changed in between; and by fairseq-validate with a mode of its own."""
    start = ToyModel(correction_model.data, tmp_path / "start.pt")  # as a shallow model is trained on
    aggdec(["shrink", str(correction_model.checkpoint), str(start.checkpoint), "--decoder-layers-to-keep", "0"])
    modes = ("aggressive-beam", "beam")
    ours, stock = map(bleu, at_once(*(partial(train_on, start, mode, tmp_path / mode) for mode in modes)))
    assert len(stock) == 2
    assert 10 < stock[0] != stock[1], "with the weights of the model"
    assert ours == stock
    validate = partial(run_cli, "fairseq-validate", correction_model.data, *BLEU)
    runs = (partial(validate, "--path", tmp_path / "beam/checkpoint_last.pt", "--decoding", mode) for mode in modes)
    ours, stock = map(bleu, at_once(*runs))
    assert ours == stock != []


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
