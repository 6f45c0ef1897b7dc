"""Sentence pairs of a parallel corpus: cleaning, held-out sets, joined pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from experiments.chance import hold_out, sentence_key
from experiments.words import normalise

Pair = tuple[str, str]


def clean_pairs(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Yield the different pairs, normalised; pairs with an empty side are left out."""
    seen: set[Pair] = set()
    for source, target in pairs:
        pair = normalise(source), normalise(target)
        if all(pair) and pair not in seen:
            seen.add(pair)
            yield pair


def is_usual(pair: Pair, max_words: int, ratio: float) -> bool:
    """Whether a pair looks like a translation, by its numbers of words, as in Moses' clean-corpus-n.

    Args:
        pair: source and target.
        max_words: the most words of a side; a side must not be empty either.
        ratio: the longer side has at most this many times the words of the shorter one.
    """
    short, long = sorted(len(side.split()) for side in pair)
    return short > 0 and long <= min(max_words, ratio * short)


def without(pairs: Iterable[Pair], others: Iterable[Pair]) -> list[Pair]:
    """Leave out pairs that share a source or a target with one of the others; white space does not count."""
    others = list(others)
    sources, targets = (
        {"".join(pair[side].split()) for pair in others} for side in (0, 1)
    )
    return [
        pair
        for pair in pairs
        if "".join(pair[0].split()) not in sources
        and "".join(pair[1].split()) not in targets
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
        sizes: {held-out set: number of source sentences}.
        long_words: the number of words from which on a source counts as long; 0: none does.
        long_share: share of long sources in each held-out set; a corpus of short sentences has fewer.

    Returns:
        The held-out sets, each source once with the first of its translations, and `train`: all pairs that share
        neither a source nor a target with a held-out pair. Held-out sets depend on the sentences' hashes alone.

    Raises:
        AggdecError: there are too few long or too few short sentences.
    """
    first_translation: dict[str, str] = {}
    for source, target in pairs:
        first_translation.setdefault(source, target)
    wanted = {name: round(size * long_share) for name, size in sizes.items()}
    long: list[str] = []
    short: list[str] = []
    for source in first_translation:
        (long if 0 < long_words <= len(source.split()) else short).append(source)
    chosen = [
        hold_out(sources, shares) if any(shares.values()) else {}
        for sources, shares in (
            (long, wanted),
            (short, {name: size - wanted[name] for name, size in sizes.items()}),
        )
    ]
    held_out: dict[str, list[Pair]] = {}
    for name in sizes:
        # not sorted by the hash that they were chosen by, under which all short ones would come first
        sources = sorted(
            (s for part in chosen for s in part.get(name, [])),
            key=lambda s: sentence_key(s[::-1]),
        )
        held_out[name] = [(source, first_translation[source]) for source in sources]
    used_sources = {source for part in held_out.values() for source, _ in part}
    used_targets = {target for part in held_out.values() for _, target in part}
    train = [
        pair
        for pair in pairs
        if pair[0] not in used_sources and pair[1] not in used_targets
    ]
    return {"train": train, **held_out}


def take_out(
    train: Sequence[Pair], others: Iterable[Sequence[Pair]], sizes: dict[str, int]
) -> dict[str, list[Pair]]:
    """Held-out sets out of training pairs, and `train`: pairs that share no sentence with a held-out pair or `others`.

    Args:
        train: the pairs.
        others: the pairs of each split that is given.
        sizes: {held-out set: number of source sentences}.
    """
    return split(without(train, chain.from_iterable(others)), sizes)


def reference_columns(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """The first reference of every sentence, then the second, and so on; a sentence without more repeats its last.

    Args:
        references: the references of each sentence, at least one.
    """
    most = max(map(len, references), default=0)
    return [
        [own[min(number, len(own) - 1)] for own in references] for number in range(most)
    ]
