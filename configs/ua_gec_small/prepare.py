"""Data of the small Ukrainian grammatical error correction experiment: UA-GEC, half of whose sentences are right.

Running text -> words and marks, as the M2 file has them -> subword-nmt BPE -> fairseq binary.
"""

from pathlib import Path

from experiments.experiment import Experiment
from experiments.sentence_pairs import take_out
from experiments.steps import Steps
from experiments.text_files import given_file, read_table
from experiments.words import split_words

from fairseq_aggdec.lab.score.m2_file import read_m2

GOLD = "ua-gec/gec-only.test.m2.gz"
EXPERIMENT = Experiment(
    sides=("src", "tgt"), score=("m2", "edit-ratio", "unchanged"), m2={"test": GOLD}
)
HELD_OUT = {"valid": 500}
SYMBOLS = 3000


def text(steps: Steps, folder: Path) -> None:
    table = read_table(steps.data / "ua-gec/train.a1+a2.src-tgt.tsv.gz", (0, 1))
    train = [(split_words(source), split_words(target)) for source, target in table]
    # tokens as they are; the target is the first annotator's correction
    test = [sentence.pair() for sentence in read_m2(given_file(steps.data / GOLD))]
    for name, pairs in (take_out(train, [test], HELD_OUT) | {"test": test}).items():
        steps.write_pairs(folder, name, pairs)


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.learn_subwords(SYMBOLS), max_tokens=110)
    steps.binarise()
