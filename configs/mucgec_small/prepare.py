"""Data of the small Chinese grammatical error correction experiment.

There is no Chinese text for training: sentences are generated from the words of jieba's dictionary, errors from
pypinyin's pronunciations (pip install jieba pypinyin). Characters as tokens, as in nlpcc18_gec -> fairseq binary.
MuCGEC's development set (Zhang et al. 2022) is for testing alone.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from experiments.experiment import Experiment
from experiments.sentence_pairs import reference_columns, take_out
from experiments.steps import Steps
from experiments.text_files import read_lines, write_lines
from experiments.words import characters

from fairseq_aggdec.errors import AggdecError

from .sentences import WordSentences

EXPERIMENT = Experiment(
    sides=("src", "tgt"), score=("m2-references", "edit-ratio", "unchanged")
)
SENTENCES = WordSentences(lines=120000, seed=1, another_sentence=0.5)
HELD_OUT = {"valid": 500}
MIN_OCCURRENCES = 10
"""rarer characters are unknown, so that the model learns to copy the unknown token; the test set has some"""

CORRECT = "没有错误"
"""MuCGEC's words for "no error", in place of a correction"""
UNCLEAR = "无法标注"
"""MuCGEC's words for "cannot be annotated", in place of a correction"""


def read_corrections(
    lines: Iterable[str], name: str
) -> Iterator[tuple[str, list[str]]]:
    """Yields each sentence with its corrections, one or more; sentences that cannot be annotated are left out.

    Args:
        lines: number, sentence, one or more corrections, separated by tabs.
        name: the name of the file, for error messages.

    Raises:
        AggdecError: a line has too few fields, or an empty sentence.
    """
    for number, line in enumerate(lines, start=1):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) < 3 or not fields[1]:
            raise AggdecError(
                f"{name}, line {number}: number, sentence and corrections are expected: {line[:60]!r}"
            )
        source = fields[1]
        corrections = [
            source if field == CORRECT else field
            for field in fields[2:]
            if field and field != UNCLEAR
        ]
        if corrections:
            yield source, corrections


def text(steps: Steps, folder: Path) -> None:
    file = steps.data / "mucgec-dev/MuCGEC_dev.txt"
    sentences = list(read_corrections(read_lines(file), str(file)))
    test = [
        (characters(source), characters(corrections[0]))
        for source, corrections in sentences
    ]
    for number, column in enumerate(
        reference_columns([corrections for _, corrections in sentences])
    ):
        write_lines(folder / f"test.ref{number}", map(characters, column))
    train = [
        (characters(source), characters(target)) for source, target in SENTENCES.pairs()
    ]
    for name, pairs in (take_out(train, [test], HELD_OUT) | {"test": test}).items():
        steps.write_pairs(folder, name, pairs)


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(None, max_tokens=250)
    steps.binarise(min_occurrences=MIN_OCCURRENCES)
