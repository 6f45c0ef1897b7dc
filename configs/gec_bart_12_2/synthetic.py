"""Synthetic pairs as prepare.py has the real ones: `pairs.src`, `pairs.tgt` in the work folder of stage `synthetic`."""

from pathlib import Path

from fairseq_aggdec.data.experiment import Experiment
from fairseq_aggdec.data.steps import Steps
from fairseq_aggdec.data.text_files import read_pairs

from ..shared.data import bea2019

EXPERIMENT = Experiment(sides=("src", "tgt"), gpt2=True)


def text(steps: Steps, folder: Path) -> None:
    steps.write_pairs(folder, "train", list(read_pairs(steps.work / "pairs.src", steps.work / "pairs.tgt")))
    for name in ("valid", "test"):
        steps.write_pairs(folder, name, list(bea2019.pairs(steps.data, name)))


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.gpt2_subwords(), max_tokens=250)
    steps.binarise(steps.data / "bart/bart.large/dict.txt")
