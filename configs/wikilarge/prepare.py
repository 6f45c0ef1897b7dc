"""Data of text simplification: WikiLarge (Zhang and Lapata 2017).

TurkCorpus' 359 sentences with 8 references are the test set.
Tokens as published -> 32K joint subwords -> fairseq binary (papers/000 Table 4).
"""

from pathlib import Path

from experiments.downloads import Original, fetch
from experiments.experiment import Experiment
from experiments.steps import Steps
from experiments.text_files import one_space, read_pairs

EXPERIMENT = Experiment(
    sides=("src", "tgt"), score=("sari", "bleu", "edit-ratio", "unchanged")
)
SYMBOLS = 32000
FILES = {
    name: [f"wiki.full.aner.ori.{name}.{side}" for side in ("src", "dst")]
    for name in ("train", "valid")
}
TURK = ["norm", *(f"turk.{number}" for number in range(8))]
ORIGINALS = [
    Original(
        "wikilarge/originals/data-simplification.tar.bz2",
        "https://github.com/louismartin/dress-data/raw/master/data-simplification.tar.bz2",
        unpack_to="wikilarge/wikilarge",
        inside="data-simplification/wikilarge",
        members=tuple(
            f"data-simplification/wikilarge/{file}"
            for files in FILES.values()
            for file in files
        ),
    ),
    *(
        Original(
            f"wikilarge/originals/test.8turkers.tok.{end}",
            f"https://raw.githubusercontent.com/cocoxu/simplification/master/data/turkcorpus/test.8turkers.tok.{end}",
        )
        for end in TURK
    ),
]


def text(steps: Steps, folder: Path) -> None:
    fetch(steps.data, ORIGINALS)
    for name, files in FILES.items():
        steps.write_pairs(
            folder,
            name,
            list(
                read_pairs(
                    *(steps.data / "wikilarge/wikilarge" / file for file in files)
                )
            ),
        )
    source, *references = (
        f"wikilarge/originals/test.8turkers.tok.{end}" for end in TURK
    )
    steps.write_test_set(folder, "test", source, references, one_space)


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.learn_subwords(SYMBOLS), max_tokens=250)
    steps.binarise()
