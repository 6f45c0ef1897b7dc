"""Data of Chinese grammatical error correction, NLPCC-2018's shared task 2 (papers/002 §4.1).

Characters -> fairseq binary. 5,000 sentences of the training data are the validation set; which 5,000 the papers do
not say. The official scores compare words: split the outputs with the shared task's PKUNLP, then run
aggdec score files --m2 nlpcc18/originals/gold.01.
"""

from collections.abc import Iterator
from pathlib import Path

from experiments.chance import hold_out
from experiments.downloads import Original, fetch
from experiments.experiment import Experiment
from experiments.sentence_pairs import Pair
from experiments.steps import Steps
from experiments.text_files import read_lines
from experiments.words import characters

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.m2_file import read_m2

EXPERIMENT = Experiment(
    sides=("src", "tgt"), score=("m2-references", "edit-ratio", "unchanged")
)
VALID_SENTENCES = 5000
_ASK = "licensed. Ask for task 2 at http://tcci.ccf.org.cn/conference/2018/taskdata.php; it is the "
TRAIN = Original(
    "nlpcc18/originals/data.train",
    ask=_ASK
    + "training file, lines of number, number of corrections, sentence, corrections",
)
GOLD = Original(
    "nlpcc18/originals/gold.01",
    ask=_ASK
    + "M2 file of the test set with both annotators, whose sentences are split into words",
)


def training_pairs(file: Path) -> Iterator[Pair]:
    """Yields the pairs of lines of number, number of corrections, sentence, its corrections, separated by tabs.

    A sentence with several corrections gives several pairs; one without a correction is paired with itself.

    Raises:
        AggdecError: a line has too few fields.
    """
    for number, line in enumerate(read_lines(file), start=1):
        fields = line.strip().split("\t")
        if len(fields) < 3:
            raise AggdecError(
                f"{file}, line {number}: has {len(fields)} fields where 3 or more are expected"
            )
        source = fields[2]
        corrections = [text for text in fields[3:] if text.strip()]
        for target in corrections or [source]:
            yield characters(source), characters(target)


def text(steps: Steps, folder: Path) -> None:
    fetch(steps.data, [TRAIN, GOLD])
    pairs = list(training_pairs(steps.data / TRAIN.path))
    chosen = dict.fromkeys(
        hold_out((source for source, _ in pairs), {"valid": VALID_SENTENCES})["valid"]
    )
    first = {source: (source, target) for source, target in reversed(pairs)}
    steps.write_pairs(
        folder, "train", [pair for pair in pairs if pair[0] not in chosen]
    )
    steps.write_pairs(folder, "valid", [first[source] for source in chosen])
    gold = (sentence.pair() for sentence in read_m2(steps.data / GOLD.path))
    steps.write_pairs(
        folder,
        "test",
        [(characters(source), characters(target)) for source, target in gold],
    )


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(None, max_tokens=250)
    steps.binarise()
