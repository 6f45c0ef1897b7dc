"""Paragraphs of LibreOffice's help, English and German: 13.6 words on average, where Tatoeba's sentences have six.

Pages repeat themselves, so whole pages are held out. Of these only the longer paragraphs are test and validation pairs;
no training pair shares a paragraph with them.
"""

from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from experiments.chance import sentence_key
from experiments.corpora import tatoeba
from experiments.sentence_pairs import Pair, clean_pairs, without
from experiments.steps import Steps
from experiments.text_files import read_table
from fairseq_aggdec.errors import AggdecError

FILE = "libreoffice-help-en-de/pairs.tsv.gz"
PAGE = 0
COLUMNS = {"en": 2, "de": 3}
HELD_OUT = {"test": 2000, "valid": 500}
"""{held-out set: number of paragraphs}"""
WORDS = range(10, 101)
"""numbers of words that the source of a held-out pair may have"""
SYMBOLS = 5000
MAX_TOKENS = 120


def parts(steps: Steps) -> dict[str, list[Pair]]:
    """{split: pairs}; which pages are held out depends on the hashes of their names alone.

    Raises:
        AggdecError: there are too few pages.
    """
    pages: dict[str, list[Pair]] = defaultdict(list)
    columns = [PAGE, *(COLUMNS[side] for side in steps.experiment.sides)]
    for page, source, target in read_table(steps.data / FILE, columns):
        pages[page].append((source, target))
    names = sorted(pages, key=sentence_key)
    held_out: dict[str, list[Pair]] = {}
    for name, size in HELD_OUT.items():
        chosen: dict[str, str] = {}
        while len(chosen) < size:
            if not names:
                raise AggdecError(
                    f"{FILE}: has too few long paragraphs for {name}: {len(chosen)} instead of {size}"
                )
            for source, target in clean_pairs(pages.pop(names.pop())):
                if len(source.split()) in WORDS:
                    chosen.setdefault(source, target)
        held_out[name] = list(chosen.items())[:size]
    train = clean_pairs(chain.from_iterable(pages.values()))
    return {"train": without(train, chain.from_iterable(held_out.values())), **held_out}


def text(steps: Steps, folder: Path) -> None:
    for name, pairs in parts(steps).items():
        steps.write_pairs(folder, name, pairs)


def text_with_tatoeba(steps: Steps, folder: Path) -> None:
    """The help pages, to whose training pairs Tatoeba's are added; Tatoeba's test set is a further one, `tatoeba`."""
    pages = parts(steps)
    sentences = tatoeba.parts(steps)
    held_out = chain(pages["test"], pages["valid"])
    further = {
        "train": pages["train"] + without(sentences["train"], held_out),
        "tatoeba": sentences["test"],
    }
    for name, pairs in (pages | further).items():
        steps.write_pairs(folder, name, pairs)


def prepare(
    steps: Steps, text: Callable[[Steps, Path], None] = text, symbols: int = SYMBOLS
) -> None:
    """Running text -> Moses tokens -> subword-nmt BPE -> fairseq binary."""
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.learn_subwords(symbols), MAX_TOKENS)
    steps.binarise()
