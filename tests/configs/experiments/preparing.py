"""Small data to prepare experiments from."""

import gzip
import hashlib
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.experiment import load_module
from experiments.steps import Steps
from experiments.text_files import write_lines

ROOT = Path(__file__).resolve().parents[3]


def write_gzipped(path: Path, lines: list[str]) -> None:
    """Writes lines to a gzipped file in a folder that need not be there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as output:
        output.writelines(line + "\n" for line in lines)


def make_data(folder: Path) -> Path:
    """Writes tiny stand-ins for the data sets of configs/gec_small."""
    names = "Tom, Mary, The teacher, My friend, The old man, She, He, Somebody".split(
        ", "
    )
    verbs = "reads, buys, wants, likes, finds, has, was given".split(", ")
    things = (
        "a new book, the red car, an apple, some money, the best answer, a good friend"
    )
    sentences = [
        f"{' '.join(words)} and is happy."
        for words in product(names, verbs, things.split(", "))
    ]
    files = {
        "tatoeba-en-de/deu.txt.gz": [f"{sentence}\tSatz" for sentence in sentences],
        "mono-openstax-psychology/psychology2e.en.txt.gz": [
            "People are often influenced by the group they are in."
        ],
        "mono-peps/peps.en.txt.gz": [
            f"This document describes what {name} has decided to do." for name in names
        ]
        * 3,
        "mlqe-pe-en-de/train.src.gz": [
            'The river , which is 10 km long , does n\'t reach " the sea " .'
        ],
        "scitldr/train.jsonl.gz": [
            '{"source": ["We propose a method.", "It is as good as the others, and faster."]}'
        ],
        "mono-litbank/litbank.en.txt.gz": [
            "He finds the red car and is happy.",
            "Thou art a knave and is happy.",
        ],
    }
    for name, lines in files.items():
        write_gzipped(folder / name, lines)
    (folder / "jfleg").mkdir()
    for part in ("dev", "test"):
        for suffix in ("src", "ref0", "ref1", "ref2", "ref3"):
            write_lines(
                folder / "jfleg" / f"{part}.{suffix}",
                ["I do n't know it . ", "She reads the book ."],
            )
    return folder


def experiment(name: str, **settings: Any) -> ModuleType:
    """The `prepare.py` of an experiment, with other settings."""
    module = load_module(ROOT / f"configs/{name}/prepare.py")
    vars(module).update(settings)
    return module


def small_correction() -> ModuleType:
    """The preparation of configs/gec_small with smaller held-out sets and fewer joined lines."""
    module = experiment("gec_small", HELD_OUT={"valid": 20, "test": 20})
    module.JOINED["lines"] = 10
    return module


def prepare(module: ModuleType, data: Path, work: Path) -> None:
    """Runs the steps of an experiment."""
    work.mkdir(exist_ok=True)
    module.prepare(Steps(module.EXPERIMENT, data, work))


def digest(work: Path) -> str:
    """The SHA-256 of what a preparation has made: names and contents."""
    made = hashlib.sha256()
    for path in sorted(
        path
        for path in work.rglob("*")
        if path.is_file() and path.name != "preprocess.log"
    ):
        made.update(f"{path.relative_to(work)}\n".encode() + path.read_bytes())
    return made.hexdigest()
