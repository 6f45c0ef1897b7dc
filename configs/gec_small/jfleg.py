"""JFLEG as the shipped corrector reads it, with its subwords and dictionary, for measurements without a training:

aggdec prepare configs/gec_small/jfleg.py --data $AGGDEC_DATA --work work/jfleg
"""

from pathlib import Path

from experiments import ptb, subwords
from experiments.experiment import Experiment, TestSet
from experiments.steps import Steps, shipped_dictionary

from .errors.clean_pairs import CleanText, write_clean, write_erroneous
from .errors.corruption_files import FileCorruption

EXPERIMENT = Experiment(
    sides=("src", "tgt"),
    languages={"src": "en", "tgt": "en"},
    test_sets=(TestSet("jfleg"),),
    score=("gleu", "edit-ratio", "unchanged"),
)
CLEAN_TEXT = [
    CleanText("mono-openstax-psychology/psychology2e.en.txt.gz", running_text=True)
]
"""for fairseq-preprocess, which wants a training set"""


def text(steps: Steps, folder: Path) -> None:
    write_erroneous(steps, folder, FileCorruption(seed=1))
    references = [f"jfleg/test.ref{number}" for number in range(4)]
    steps.write_test_set(folder, "jfleg", "jfleg/test.src", references, ptb.detokenise)


def prepare(steps: Steps) -> None:
    steps.once(
        "clean",
        lambda _, folder: write_clean(
            CLEAN_TEXT, {"valid": 100, "test": 100}, steps.data, folder
        ),
    )
    steps.once("text", text)
    steps.tokenise(subwords.as_written)
    steps.encode(steps.shipped_subwords("gec"), max_tokens=110)
    steps.binarise(shipped_dictionary("gec"))
