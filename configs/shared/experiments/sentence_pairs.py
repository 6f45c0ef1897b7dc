"""Sentence pairs of a parallel corpus: cleaning, held-out sets, joined pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from experiments.chance import hold_out, sentence_key
from experiments.words import normalise

Pair = tuple[str, str]


def clean_pairs(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Yield the different pairs, normalised; pairs with an empty side are left out."""
    seen: set[Pair] = set()
    for source, target in pairs:
        pair = (normalise(source), normalise(target))
        if not all(pair) or pair in seen:
            continue
        seen.add(pair)
        yield pair


def is_usual(
    pair: Pair,
    max_words: int,
    ratio: float,
) -> bool:
    """Whether a pair looks like a translation, by its counts of words, as in Moses' clean-corpus-n.

    Args:
        pair: source and target.
        max_words: the most words of a side; a side must not be empty either.
        ratio: the longer side has at most this many times the words of the shorter one.
    """
    lengths = [len(side.split()) for side in pair]
    shortest = min(lengths)
    longest = min(max_words, ratio * shortest)
    return shortest > 0 and max(lengths) <= longest


def without(
    pairs: Iterable[Pair],
    others: Iterable[Pair],
) -> list[Pair]:
    """Leave out pairs that share a source or a target with one of the others; white space does not count."""
    return _apart(pairs, others, lambda sentence: "".join(sentence.split()))


def _apart(
    pairs: Iterable[Pair],
    others: Iterable[Pair],
    key: Callable[[str], str],
) -> list[Pair]:
    """The pairs that share neither a source nor a target with one of the others."""
    sources = set()
    targets = set()
    for source, target in others:
        sources.add(key(source))
        targets.add(key(target))
    return [
        (source, target)
        for source, target in pairs
        if key(source) not in sources and key(target) not in targets
    ]


def split(
    pairs: Sequence[Pair],
    sizes: dict[str, int],
    long_words: int = 0,
    long_share: float = 0.0,
) -> dict[str, list[Pair]]:
    """Split a corpus by source sentence.

    Args:
        pairs: different (source, target) pairs.
        sizes: {held-out set: count of source sentences}.
        long_words: words from which on a source is long; 0: none does.
        long_share: share of long sources in each held-out set; a corpus of short sentences has fewer.

    Returns:
        The held-out sets, each source once with the first of its translations, and `train`: all pairs that share
        neither a source nor a target with a held-out pair. Held-out sets depend on the sentences' hashes alone.

    Raises:
        AggdecError: there are too few long or too few short sentences.
    """
    # each source with the first of its translations
    translations = dict(reversed(pairs))
    long = {source for source in translations if 0 < long_words <= len(source.split())}
    # how many long and how many short sources each set has
    long_sizes = {name: round(size * long_share) for name, size in sizes.items()}
    short_sizes = {name: size - long_sizes[name] for name, size in sizes.items()}
    chosen: dict[str, list[str]] = {name: [] for name in sizes}
    for sources, wanted in (
        (long, long_sizes),
        (translations.keys() - long, short_sizes),
    ):
        if any(wanted.values()):
            for name, part in hold_out(sources, wanted).items():
                chosen[name] += part
    held_out = {}
    for name, part in chosen.items():
        # not sorted by the hash that they were chosen by, under which all short ones would come first
        part.sort(key=lambda source: sentence_key(source[::-1]))
        held_out[name] = [(source, translations[source]) for source in part]
    train = _apart(pairs, chain.from_iterable(held_out.values()), key=str)
    return {"train": train, **held_out}


def take_out(
    train: Sequence[Pair],
    others: Iterable[Sequence[Pair]],
    sizes: dict[str, int],
) -> dict[str, list[Pair]]:
    """Held-out sets out of training pairs, and `train`: pairs that share no sentence with a held-out pair or `others`.

    Args:
        train: the pairs.
        others: the pairs of each split that is given.
        sizes: {held-out set: count of source sentences}.
    """
    given = chain.from_iterable(others)
    return split(without(train, given), sizes)


def reference_columns(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """The first reference of every sentence, then the second, and so on; a sentence without more repeats its last.

    Args:
        references: the references of each sentence, at least one.
    """
    most = max(map(len, references), default=0)
    columns = []
    for number in range(most):
        column = [texts[min(number, len(texts) - 1)] for texts in references]
        columns.append(column)
    return columns
