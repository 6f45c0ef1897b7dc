"""Data of English grammatical error correction: tokens as published -> 32K joint subwords -> fairseq binary.

papers/000 §4.1.1.
"""

from pathlib import Path

from experiments.corpora import bea2019
from experiments.downloads import fetch
from experiments.experiment import Experiment
from experiments.steps import Steps

EXPERIMENT = Experiment(
    sides=("src", "tgt"),
    test_sets=(bea2019.TEST_SET,),
    m2=bea2019.M2,
    score=("m2", "edit-ratio", "unchanged"),
)
SYMBOLS = 32000


def text(steps: Steps, folder: Path) -> None:
    fetch(steps.data, bea2019.ORIGINALS)
    for name in ("train", "valid", "test"):
        steps.write_pairs(folder, name, bea2019.pairs(steps.data, name))
    steps.write_test_set(folder, "bea19", bea2019.BEA19, [])


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.learn_subwords(SYMBOLS), max_tokens=250)
    steps.binarise()
