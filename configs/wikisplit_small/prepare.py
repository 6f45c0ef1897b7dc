"""Data of the small text simplification experiment: sentences, and their simplifications by people.

Wikipedia and news for learners. Running text -> Moses tokens -> subwords of the shipped corrector -> fairseq binary.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from experiments import ptb
from experiments.experiment import Experiment, TestSet
from experiments.sentence_pairs import Pair, take_out
from experiments.steps import Steps, shipped_dictionary
from experiments.text_files import one_space, read_lines, read_table

from fairseq_aggdec.errors import AggdecError

EXPERIMENT = Experiment(
    sides=("complex", "simple"),
    languages={"complex": "en", "simple": "en"},
    test_sets=(TestSet("asset"),),  # for evaluation alone; binarised as test1
    score=("sari", "sacrebleu", "edit-ratio", "unchanged"),
)
HELD_OUT = {"valid": 500}
TEST_PAIRS = 1000


def wikisplit(file: Path) -> Iterator[Pair]:
    """Yields pairs of WikiSplit: Penn Treebank tokens, and `<::::>` where a sentence was split."""
    for pair in read_table(file, (0, 1)):
        source, target = (
            one_space(ptb.detokenise(side.replace("<::::>", " "))) for side in pair
        )
        yield source, target


def onestopenglish(file: Path, columns: Sequence[int]) -> Iterator[Pair]:
    """Yields pairs of OneStopEnglish: two sentences, one in a line, and a line of stars behind each pair.

    Args:
        file: the file.
        columns: the lines of source and target in a pair, from 0.

    Raises:
        AggdecError: a pair has too few lines.
    """
    block: list[str] = []
    number = 0
    for number, line in enumerate([*read_lines(file), "*******"], start=1):
        line = line.strip("\ufeff \t")
        if line and line != "*******":
            block.append(line)
        elif block and line:
            if len(block) <= max(columns):
                raise AggdecError(
                    f"{file}, the pair that ends at line {number}: has {len(block)} lines, not 2"
                )
            yield one_space(block[columns[0]]), one_space(block[columns[1]])
            block = []


def text(steps: Steps, folder: Path) -> None:
    wiki = steps.data / "wikisplit"
    news = steps.data / "onestopenglish"
    train = [
        *wikisplit(wiki / "tune.tsv.gz"),
        *wikisplit(wiki / "validation.tsv.gz"),
        *onestopenglish(news / "ADV-INT.txt", (0, 1)),
        *onestopenglish(news / "ADV-ELE.txt", (0, 1)),
        *onestopenglish(news / "ELE-INT.txt", (1, 0)),  # the simpler one comes first
    ]
    test = list(islice(wikisplit(wiki / "test.tsv.gz"), TEST_PAIRS))
    for name, pairs in (take_out(train, [test], HELD_OUT) | {"test": test}).items():
        steps.write_pairs(folder, name, pairs)
    references = [f"asset/asset.test.simp.{number}" for number in range(10)]
    steps.write_test_set(
        folder, "asset", "asset/asset.test.orig", references, ptb.detokenise
    )


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.shipped_subwords("gec"), max_tokens=110)
    steps.binarise(shipped_dictionary("gec"))
