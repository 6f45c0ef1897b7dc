"""Data of the small English grammatical error correction experiment.

Clean sentences -> synthetic errors -> tokens -> subwords of the shipped corrector -> fairseq binary.
"""

from pathlib import Path

from experiments import ptb, subwords
from experiments.experiment import Experiment, TestSet
from experiments.steps import Steps, shipped_dictionary

from .errors.clean_pairs import CleanText, write_clean, write_erroneous
from .errors.corruption_files import FileCorruption

TESTS = {"jfleg-dev": "jfleg/dev", "jfleg-test": "jfleg/test"}
"""real test sets in Penn Treebank tokens, never trained on; binarised as test1, test2"""
EXPERIMENT = Experiment(
    sides=("src", "tgt"),
    languages={"src": "en", "tgt": "en"},
    training_sets=("train", "train1"),
    test_sets=tuple(map(TestSet, TESTS)),
    score=("gleu", "edit-ratio", "unchanged", "exact"),
)

# Essays are the target domain: short modern sentences and expository prose in full, fiction only where it reads modern.
# Encyclopedia and abstracts have units, names and the present tense. A repeated sentence gets other errors each time.
CLEAN_TEXT = [
    CleanText("tatoeba-en-de/deu.txt.gz", column=0, repeat=3),
    CleanText(
        "mono-openstax-psychology/psychology2e.en.txt.gz", repeat=16, running_text=True
    ),
    CleanText("mono-peps/peps.en.txt.gz", repeat=4, running_text=True),
    CleanText("mlqe-pe-en-de/train.src.gz", repeat=12, tokenised=True),
    CleanText(
        "scitldr/train.jsonl.gz", repeat=8, json_field="source", running_text=True
    ),
    CleanText(
        "mono-litbank/litbank.en.txt.gz",
        running_text=True,
        modern_only=True,
        max_unknown_words=1,
    ),
]
JOINED = {"lines": 60000, "min_words": 36, "max_words": 75}
"""long examples from the running text, so that the model keeps its place beyond 60 subwords"""
UNUSUAL_SHARE = 0.1
"""share of lines with emoji, brackets, other scripts, a word processor's punctuation, which the model learns to keep"""
HELD_OUT = {"valid": 1000, "test": 1000}
ERRORS = FileCorruption(seed=1, keep_clean=0.05, error_rate=0.2)


def text(steps: Steps, folder: Path) -> None:
    write_erroneous(steps, folder, ERRORS)
    for name, place in TESTS.items():
        references = [f"{place}.ref{number}" for number in range(4)]
        steps.write_test_set(folder, name, f"{place}.src", references, ptb.detokenise)


def prepare(steps: Steps) -> None:
    steps.once(
        "clean",
        lambda _, folder: write_clean(
            CLEAN_TEXT, HELD_OUT, steps.data, folder, JOINED, UNUSUAL_SHARE
        ),
    )
    steps.once("text", text)
    # hides characters that the model does not know: fairseq_aggdec/text/line.py
    steps.tokenise(subwords.as_written)
    # longer training pairs cost time and memory and do not help much
    # the training begins at the shipped corrector
    steps.encode(steps.shipped_subwords("gec"), max_tokens=110)
    steps.binarise(shipped_dictionary("gec"))
