"""The restricted training data of the BEA-2019 shared task (papers/000 §4.1.1).

https://www.cl.cam.ac.uk/research/nl/bea2019st/#data. Tokens as published. CoNLL-2013 is the validation set, CoNLL-2014
the test set; their targets are the first annotator's corrections. `bea19`, the shared task's own test set, has no
published corrections: its site scores outputs.
"""

from collections.abc import Iterator
from pathlib import Path

from experiments.downloads import published
from experiments.experiment import TestSet
from experiments.sentence_pairs import Pair
from fairseq_aggdec.lab.score.m2_file import read_m2

CONLL13 = "bea2019/release2.3.1/original/data/official-preprocessed.m2"
CONLL14 = "bea2019/conll14st-test-data/noalt/official-2014.combined.m2"
LANG8 = "bea2019/originals/lang8.train.auto.bea19.m2"
NUCLE = "bea2019/originals/nucle.train.gold.bea19.m2"
FCE = "bea2019/fce/m2/fce.train.gold.bea19.m2"
WI = "bea2019/wi+locness/m2/ABC.train.gold.bea19.m2"
BEA19 = "bea2019/wi+locness/test/ABCN.test.bea19.orig"
M2 = {"valid": CONLL13, "test": CONLL14}
# papers/000, footnote 5; binarised as test1
TEST_SET = TestSet("bea19", has_references=False)


ORIGINALS = published("bea2019")
FILES = {
    "train": (LANG8, NUCLE, FCE, WI),
    "wi": (WI,),
    "valid": (CONLL13,),
    "test": (CONLL14,),
}
"""{split: M2 files}; `wi`, the Write & Improve part of `train`, is for fine-tuning in several stages"""


def pairs(data: Path, split: str) -> Iterator[Pair]:
    """Yields the pairs of a split."""
    for file in FILES[split]:
        for sentence in read_m2(data / file):
            yield sentence.pair()
