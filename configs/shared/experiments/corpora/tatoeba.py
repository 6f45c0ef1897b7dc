"""English-German sentence pairs of Tatoeba, split into training and held-out pairs.

One sentence often has several translations: all of them are put into the same split, and no target of a held-out pair
is trained on. Most sentences are short: half of the held-out ones are chosen among the longer ones.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.chance import sentence_key
from experiments.sentence_pairs import Pair, clean_pairs, split
from experiments.steps import Steps
from experiments.text_files import read_table

COLUMNS = ("en", "de")
"""languages of the columns of the table"""
HELD_OUT = {"valid": 2000, "test": 2000}
LONG_WORDS = 10
"""number of words from which on a source counts as long"""
LONG_SHARE = 0.5
"""share of long sources in each held-out set"""
JOINED_PAIRS = 12000
"""number of joined pairs, from which the model also learns sentences longer than the usual 8 words"""
SYMBOLS = 5000


def parts(steps: Steps) -> dict[str, list[Pair]]:
    """{split: pairs}"""
    columns = [COLUMNS.index(side) for side in steps.experiment.sides]
    table = read_table(steps.data / "tatoeba-en-de/deu.txt.gz", columns)
    pairs = list(clean_pairs((source, target) for source, target in table))
    splits = split(pairs, HELD_OUT, LONG_WORDS, LONG_SHARE)
    splits["train"] += join_pairs(splits["train"], JOINED_PAIRS, max_words=40)
    return splits


def text(steps: Steps, folder: Path) -> None:
    for name, part in parts(steps).items():
        steps.write_pairs(folder, name, part)


def prepare(steps: Steps) -> None:
    """Running text -> Moses tokens -> subword-nmt BPE -> fairseq binary."""
    steps.once("text", text)
    steps.tokenise()
    steps.encode(steps.learn_subwords(SYMBOLS), max_tokens=90)
    steps.binarise()


def join_pairs(pairs: Sequence[Pair], lines: int, max_words: int) -> Iterator[Pair]:
    """Yields long training pairs made of short ones, so that a model learns positions after a short sentence.

    Args:
        pairs: the training pairs.
        lines: number of joined pairs.
        max_words: the most words of a joined source; pairs are joined until a quarter, a half, three quarters or all of
            this number is reached, in turn.
    """
    order = sorted(pairs, key=lambda pair: sentence_key("\t".join(pair)))
    # sorted by their hash, so that neighbours have nothing to do with each other
    following = iter(order * 2)
    for number in range(lines):
        limit = max_words * (1 + number % 4) // 4
        line = [next(following, order[0])]
        words = len(line[0][0].split())
        for pair in following:
            words += len(pair[0].split())
            line.append(pair)
            if words >= limit:
                break
        if words <= max_words:
            yield (
                " ".join(source for source, _ in line),
                " ".join(target for _, target in line),
            )
