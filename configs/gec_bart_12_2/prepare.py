"""Data of English grammatical error correction in BART's subwords and dictionary (papers/000 §4.1, papers/002 §4.4)."""

from pathlib import Path

from experiments.corpora import bart, bea2019
from experiments.downloads import fetch
from experiments.experiment import Experiment
from experiments.steps import Steps

EXPERIMENT = Experiment(
    sides=("src", "tgt"),
    training_sets=("train", "wi"),  # training ends with `wi`
    test_sets=(bea2019.TEST_SET,),
    m2=bea2019.M2,
    score=("m2", "edit-ratio", "unchanged"),
    gpt2=True,
)


def text(steps: Steps, folder: Path) -> None:
    fetch(steps.data, [bart.model("bart.large"), *bart.SUBWORDS, *bea2019.ORIGINALS])
    for name in bea2019.FILES:
        steps.write_pairs(folder, name, bea2019.pairs(steps.data, name))
    steps.write_test_set(folder, "bea19", bea2019.BEA19, [])


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.gpt2_subwords(), max_tokens=250)
    steps.binarise(steps.data / "bart/bart.large/dict.txt")
