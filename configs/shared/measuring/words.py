"""Write the list of English words by which the shipped corrector's edits are judged (fairseq_aggdec/demo/word_list.py).

usage: .venv/bin/python configs/shared/measuring/words.py [OUT]

A word is in it that the clean texts of `TEXTS` have in two of them, or three times in one; one of up to three letters,
of which half are foreign, sixty times. A word that is written with a capital within sentences more than four times as
often as without has one in the list, too.
"""

import gzip
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TEXTS = (
    "tatoeba-en-de/deu.txt.gz",
    "mono-litbank/litbank.en.txt.gz",
    "mono-peps/peps.en.txt.gz",
    "mono-openstax-psychology/psychology2e.en.txt.gz",
    "mlqe-pe-en-de/train.src.gz",
    "scitldr/train.jsonl.gz",
)
"""files of `AGGDEC_DATA`, those of the corrector's training; their licences: fairseq_aggdec/demo/gec/README.md"""
LIST = Path(__file__).parents[3] / "fairseq_aggdec/demo/gec/words.txt.gz"


def text_of(path: Path) -> str:
    """The English of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        if path.name.startswith("deu."):
            return "".join(line.split("\t")[0] + "\n" for line in file)
        if path.suffixes[0] == ".jsonl":
            return "\n".join(
                sentence for line in file for sentence in json.loads(line)["source"]
            )
        return file.read()


def words(data: Path) -> Iterator[str]:
    """The words of the list, sorted."""
    small = Counter[str]()
    names = Counter[str]()
    files = Counter[str]()
    for name in TEXTS:
        text = text_of(data / name).replace("’", "'")
        counts = Counter(re.findall(r"\b[a-z]+(?:'[a-z]+)*\b", text))
        small += counts
        files.update(counts.keys())
        names.update(re.findall(r"(?<=[a-z,] )[A-Z][a-z]*\b", text))
    least = {word: 60 if len(word) < 4 else 3 for word in [*small, *names]}
    plain = {
        word
        for word in small
        if small[word] >= least[word] or (files[word] > 1 and len(word) > 3)
    }
    capital = {
        word
        for word in names
        if names[word] >= max(least[word], 4 * small[word.lower()])
    }
    yield from sorted((plain | capital) - {word.lower() for word in capital})


def main() -> None:
    text = "\n".join(words(Path(os.environ.get("AGGDEC_DATA") or "../shared/data")))
    out = Path(sys.argv[1]) if sys.argv[1:] else LIST
    out.write_bytes(gzip.compress(text.encode("ascii"), mtime=0))
    print(f"{out}: {text.count(chr(10)) + 1} words, {out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
