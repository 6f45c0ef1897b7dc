"""Replays texts that grow, word by word or with words that are first cut in the middle, with a session and without.

usage: python configs/shared/measuring/growing.py [--texts 20] [--data help|tatoeba] [--cut] [--mode MODE]
           [--model mt|gec|CHECKPOINT|FOLDER] [--whole] [--seed 1]
  --model: a CHECKPOINT is decoded with the tokeniser of the shipped translator; a FOLDER is in Hugging Face's format,
  and decoded with a beam of one. The texts are paragraphs of LibreOffice's help, or three sentences of Tatoeba, of 10
  to 40 words. Passes are the verifier's; "kept alone": a session that gives no drafts to sentences that have changed.
  --whole: drafts are verified whole (--drafts whole), which spares the most passes, and not the most time.
"""

import argparse
import gzip
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fairseq_aggdec import load
from fairseq_aggdec.demo.shipped import SHIPPED
from fairseq_aggdec.model import Model
from fairseq_aggdec.text.results import Result

FILES = {
    "help": ("libreoffice-help-en-de/pairs.tsv.gz", 2),
    "tatoeba": ("tatoeba-en-de/deu.txt.gz", 0),
}
"""file, and the column of its English text"""


def texts(folder: Path, data: str, count: int, seed: int) -> list[str]:
    """Texts of a data set, chosen by chance: paragraphs of the help, three sentences of Tatoeba."""
    name, column = FILES[data]
    with gzip.open(folder / name, "rt", encoding="utf-8") as file:
        lines = [line.split("\t")[column].strip() for line in file]
    random.Random(seed).shuffle(lines)
    if data == "tatoeba":
        lines = [" ".join(lines[place : place + 3]) for place in range(0, 3000, 3)]
    fitting = [line for line in lines if 10 <= len(line.split()) <= 40]
    return fitting[:count]


def updates(text: str, cut: bool) -> Iterator[str]:
    """A text as it grows; `cut`: a word of more than three letters comes in halves."""
    words = text.split()
    for count, word in enumerate(words, 1):
        now = " ".join(words[:count])
        if cut and len(word) > 3:
            yield now[: -(len(word) // 2)]
        yield now


def loaded(name: str, **options: str) -> Model:
    """A shipped model, one in Hugging Face's format, or a checkpoint."""
    if name in SHIPPED:
        return load.shipped(name, **options)
    if Path(name).is_dir():
        return load.hub(Path(name), **options)
    return load(name, **SHIPPED["mt"].options, **options)


Update = Callable[[str], Result]


def replay(
    growing: list[list[str]], begin: Callable[[], Update]
) -> tuple[list[Result], float]:
    """The results of all updates, and the seconds that they took; `begin` begins a text."""
    results = []
    start = time.perf_counter()
    for text in growing:
        update = begin()
        results += [update(part) for part in text]
    return results, time.perf_counter() - start


def passes(results: list[Result]) -> int:
    """Those of the verifier."""
    return sum(one.iterations for result in results for one in result.sentences)


def said(result: Result) -> list[object]:
    """What must be the same with a session and without."""
    return [result.text, [(one.tokens, one.note) for one in result.sentences]]


def main() -> None:
    """Prints a line for each way of decoding, and compares all outputs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--data", choices=FILES, default="help")
    parser.add_argument("--cut", action="store_true")
    parser.add_argument("--model", default="mt")
    parser.add_argument("--mode")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    model = loaded(args.model, **({"drafts": "whole"} if args.whole else {}))
    folder = Path(os.environ.get("AGGDEC_DATA") or "../shared/data")
    found = texts(folder, args.data, args.texts, args.seed)
    growing = [list(updates(text, args.cut)) for text in found]
    # how it is decoded, and how without drafts, with kept sentences alone
    settings = {"mode": args.mode, "beam": 1}

    def kept() -> Update:
        session = model.session(**settings)
        session.reads_drafts = False
        return session.update

    ways: dict[str, Callable[[], Update]] = {
        "greedy": lambda: lambda text: model.translate(text, "greedy"),
        "without": lambda: lambda text: model.translate(text, **settings),
        "kept alone": kept,
        "session": lambda: model.session(**settings).update,
    }
    if args.whole:
        del ways["greedy"]  # which reads no --drafts
    count = sum(map(len, growing))
    print(f"{args.model}: {len(growing)} texts, {count} updates")
    print("              passes   ms an update   outputs that differ")
    first: list[Result] = []
    for name, begin in ways.items():
        results, seconds = replay(growing, begin)
        first = first or results
        differ = sum(
            said(one) != said(two) for one, two in zip(first, results, strict=True)
        )
        print(
            f"{name:12}{passes(results) / count:8.2f}{1000 * seconds / count:15.1f}{differ:22}",
            flush=True,
        )


if __name__ == "__main__":
    main()
