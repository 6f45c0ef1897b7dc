"""fairseq-train with BLEU on validation, and fairseq-validate."""

import re
from pathlib import Path

from fairseq_aggdec.cli.verbs import main as aggdec
from tests.cli.correction import MODEL, PLUGIN, VALIDATED, Process
from tests.support.helpers import ToyModel, run_cli

BLEU = ["--user-dir", PLUGIN, "--task", "aggressive_translation", "--max-tokens", 2000]
BLEU += ["--eval-bleu-args", '{"beam": 2, "max_len_b": 10}']


def train_on(model: ToyModel, decoding: str, folder: Path) -> Process:
    """Two epochs from `model`, with BLEU after each."""
    architecture = MODEL[: MODEL.index("--save-interval-updates")]
    training = "--eval-bleu --optimizer adam --clip-norm 1 --max-epoch 2 --seed 1 --cpu --no-progress-bar"
    training += f" --save-dir {folder} --no-epoch-checkpoints --finetune-from-model {model.checkpoint}"
    options = [*BLEU, "--decoding", decoding, *architecture, *training.split()]
    return run_cli("fairseq-train", model.data, *options)


def bleu(process: Process) -> list[float]:
    """What was validated; the mode has decoded all sentences, if it is one of the plugin's."""
    log = process.stdout + process.stderr
    modes = re.findall(rf"--decoding (\S+): {VALIDATED} sentences", log)
    assert modes or "--decoding" not in log
    return [
        float(value)
        for value in re.findall(r"valid on 'valid' subset.*? \| bleu ([\d.]+)", log)
    ]


def test_bleu_on_validation_is_that_of_the_beam(
    correction_model: ToyModel, tmp_path: Path
) -> None:
    """After each epoch, as the weights have changed in between; and by fairseq-validate with a mode of its own."""
    # as a shallow model is trained on
    start = ToyModel(correction_model.data, tmp_path / "start.pt")
    models = f"{correction_model.checkpoint} {start.checkpoint}"
    aggdec(f"shrink {models} --decoder-layers-to-keep 0".split())
    modes = ("aggressive-beam", "beam")
    ours, stock = (bleu(train_on(start, mode, tmp_path / mode)) for mode in modes)
    assert len(stock) == 2
    assert 10 < stock[0] != stock[1], "with the weights of the model"
    assert ours == stock
    last = tmp_path / "beam/checkpoint_last.pt"
    options = [correction_model.data, *BLEU, "--path", last, "--decoding"]
    ours, stock = (bleu(run_cli("fairseq-validate", *options, mode)) for mode in modes)
    assert ours == stock != []
