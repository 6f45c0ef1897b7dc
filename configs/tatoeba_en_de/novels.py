"""Sentences of novels, without translations: further sources for the drafter.

The verifier translates them in the stage `novels`. Until then each is its own target. The subwords are those of the
shipped pair.
"""

from itertools import islice
from pathlib import Path

from experiments.experiment import Experiment
from experiments.sentence_pairs import is_usual, take_out
from experiments.steps import Steps, shipped_dictionary
from experiments.text_files import one_space, read_lines

EXPERIMENT = Experiment(sides=("en", "de"), languages={"en": "en", "de": "en"})
LINES = 180000


def text(steps: Steps, folder: Path) -> None:
    lines = map(
        one_space,
        islice(read_lines(steps.data / "mono-litbank/litbank.en.txt.gz"), LINES),
    )
    train = [
        pair
        for pair in ((line, line) for line in lines)
        if is_usual(pair, max_words=16, ratio=1)
    ]
    # fairseq-preprocess wants them
    for name, pairs in take_out(train, [], {"valid": 10, "test": 10}).items():
        steps.write_pairs(folder, name, pairs)


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.shipped_subwords("mt"), max_tokens=90)
    steps.binarise(shipped_dictionary("mt"))
