"""Data of the small summarization experiment: abstracts of papers and their one-sentence summaries (SciTLDR-A).

The runnable stand-in for CNN/DailyMail. Running text -> Moses tokens -> subword-nmt BPE -> fairseq binary.
"""

from pathlib import Path

from experiments.experiment import Experiment
from experiments.sentence_pairs import reference_columns
from experiments.steps import Steps
from experiments.text_files import read_lines, write_lines

from .documents import denoising_pairs, read_documents

EXPERIMENT = Experiment(
    sides=("source", "target"),
    languages={"source": "en", "target": "en"},
    # train1: document -> extract, beside the 2,000 summaries, on which fairseq trains without being told
    training_sets=("train", "pretrain", "train1"),
    score=("rouge", "bleu", "repetition"),
)
FILES = {"train": "train", "valid": "dev", "test": "test"}
SYMBOLS = 6000
MAX_SOURCE_TOKENS = 256
"""a document is cut there, as fairseq's recipe for BART cuts it (--truncate-source)"""


def text(steps: Steps, folder: Path) -> None:
    """The first summary is the target; where there are several, for `valid` and `test`, all of them are references."""
    for name, stem in FILES.items():
        file = steps.data / f"scitldr/{stem}.jsonl.gz"
        documents = list(read_documents(read_lines(file), str(file)))
        steps.write_pairs(
            folder,
            name,
            [(document.text, document.summaries[0]) for document in documents],
        )
        if name == "train":
            # BART's pre-training in small: passages that have lost words at random are to be restored
            steps.write_pairs(
                folder,
                "pretrain",
                list(denoising_pairs(documents, max_words=180, deletions=0.1)),
            )
            extracts = [
                (document.text, document.extract)
                for document in documents
                if document.extract
            ]
            steps.write_pairs(folder, "train1", extracts)
        elif (
            len(
                summaries := reference_columns(
                    [document.summaries for document in documents]
                )
            )
            > 1
        ):
            for number, column in enumerate(summaries):
                write_lines(folder / f"{name}.ref{number}", column)


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(
        steps.learn_subwords(SYMBOLS),
        max_tokens=256,
        max_source_tokens=MAX_SOURCE_TOKENS,
    )
    steps.binarise()
