"""Synthetic pairs as prepare.py has the real ones: `pairs.src`, `pairs.tgt` in the work folder of stage `synthetic`."""

from pathlib import Path

from experiments.corpora import bea2019
from experiments.experiment import Experiment
from experiments.steps import Steps
from experiments.text_files import read_pairs

EXPERIMENT = Experiment(sides=("src", "tgt"), gpt2=True)


def text(steps: Steps, folder: Path) -> None:
    steps.write_pairs(
        folder, "train", read_pairs(steps.work / "pairs.src", steps.work / "pairs.tgt")
    )
    for name in ("valid", "test"):
        steps.write_pairs(folder, name, bea2019.pairs(steps.data, name))


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.gpt2_subwords(), max_tokens=250)
    steps.binarise(steps.data / "bart/bart.large/dict.txt")
