"""The data of configs/gec_small without joined sentences: a quarter of a million pairs."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

from experiments.experiment import load_module
from experiments.steps import Steps
from experiments.text_files import read_lines, write_lines

small = load_module(Path(__file__).parents[1] / "gec_small/prepare.py")
EXPERIMENT = replace(small.EXPERIMENT, training_sets=("train",))
PAIRS = 250_000


def clean(steps: Steps, folder: Path) -> None:
    small.write_clean(
        small.CLEAN_TEXT,
        small.HELD_OUT,
        steps.data,
        folder,
        unusual_share=small.UNUSUAL_SHARE,
    )
    write_lines(folder / "train", list(islice(read_lines(folder / "train"), PAIRS)))


def prepare(steps: Steps) -> None:
    steps.once("clean", clean)
    small.prepare(steps)
