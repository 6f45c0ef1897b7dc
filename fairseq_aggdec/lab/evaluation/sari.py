"""SARI, the metric of text simplification (Xu et al. 2016, "Optimizing Statistical Machine Translation for Text
Simplification"); papers/000 Table 4.

SARI compares the n-grams of up to four tokens that the output adds to the source, keeps and deletes with those that the
references add, keep and delete; an n-gram that only some references keep counts in part. Two programs are in use, and
their numbers differ. Both are here:

- `corpus_sari` is that of EASSE (Alva-Manchego et al. 2019) with its defaults. Counts are summed over the corpus. The
  score is the mean over n-gram orders of the F1 of adding, keeping and deleting. Text is lowercased and tokenised by
  mteval's rules (`13a`).
- `sentence_sari` is that of the authors' own script, for one sentence; a corpus scores the mean of its sentences. It
  takes the F1 of adding and keeping but the precision of deleting, and averages kept and deleted shares over distinct
  n-grams. A deleted n-gram counts as right as far as it was deleted more often than the references have it; in EASSE,
  as far as the source has it more often than the references. Text is lowercased and split at spaces.

In both, precision or recall of an empty set is 0: an output that rightly changes nothing scores 0 for adding and
deleting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.evaluation.gleu import ngrams

ORDERS = (1, 2, 3, 4)

Grams = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class Sari:
    """SARI and its three parts, 0 to 1."""

    add: float
    keep: float
    delete: float

    @property
    def score(self) -> float:
        """SARI: the mean of the parts."""
        return (self.add + self.keep + self.delete) / 3


@dataclass
class _Operations:
    """n-grams of one order in one sentence. Counts of source and output are multiplied by the number of references."""

    added: Mapping[tuple[str, ...], int]
    to_add: Mapping[tuple[str, ...], int]
    kept: Grams
    to_keep: Grams
    deleted: Grams
    to_delete: Grams

    @classmethod
    def of(cls, source: Grams, output: Grams, references: Sequence[Grams]) -> _Operations:
        wanted: Grams = sum(references, Counter())
        source, output = _times(source, len(references)), _times(output, len(references))
        return cls(
            added=dict.fromkeys(output.keys() - source.keys(), 1),
            to_add=dict.fromkeys(wanted.keys() - source.keys(), 1),
            kept=source & output,
            to_keep=source & wanted,
            deleted=source - output,
            to_delete=source - wanted,
        )

    def pairs(self) -> list[tuple[Grams, Grams]]:
        """For adding, keeping and deleting: the n-grams of the output and those of the references."""
        return [
            (Counter(self.added), Counter(self.to_add)),
            (self.kept, self.to_keep),
            (self.deleted, self.to_delete),
        ]


def _times(grams: Grams, number: int) -> Grams:
    return Counter({gram: count * number for gram, count in grams.items()})


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


@dataclass
class _Totals:
    """Sums over a corpus for one operation and one order."""

    right: int = 0
    done: int = 0
    wanted: int = 0

    def add(self, done: Grams, wanted: Grams) -> None:
        self.right += (done & wanted).total()
        self.done += done.total()
        self.wanted += wanted.total()

    def f1(self) -> float:
        return _f1(_share(self.right, self.done), _share(self.right, self.wanted))


def corpus_sari(sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]]) -> Sari:
    """SARI of a corpus as EASSE computes it.

    Args:
        sources: text, one sentence each.
        outputs: the simplified sentences.
        references: simplified sentences by people, one list for each reference.

    Raises:
        AggdecError: the numbers of sentences differ, or there is nothing to score.
    """
    _check(sources, outputs, references)
    tokenise = Tokenizer13a()
    totals = {order: [_Totals() for _ in range(3)] for order in ORDERS}  # of adding, keeping, deleting
    for sentence in zip(sources, outputs, *references, strict=True):
        tokens = [tokenise(text.lower()).split() for text in sentence]
        for order in ORDERS:
            source, output, *wanted = (ngrams(part, order) for part in tokens)
            for total, pair in zip(totals[order], _Operations.of(source, output, wanted).pairs(), strict=True):
                total.add(*pair)
    by_order = ([total.f1() for total in totals[order]] for order in ORDERS)
    return Sari(*map(fmean, zip(*by_order, strict=True)))


def sentence_sari(source: str, output: str, references: Sequence[str]) -> Sari:
    """SARI of one sentence as the authors' script computes it.

    Args:
        source: tokens joined by spaces.
        output: its simplification.
        references: at least one.
    """
    by_order = []
    for order in ORDERS:
        grams = [ngrams(text.lower().split(), order) for text in (source, output, *references)]
        operations = _Operations.of(grams[0], grams[1], grams[2:])
        right = len(operations.added.keys() & operations.to_add.keys())
        kept = operations.kept & operations.to_keep
        deleted = operations.deleted - sum(grams[2:], Counter())
        by_order.append(
            (
                _f1(_share(right, len(operations.added)), _share(right, len(operations.to_add))),
                _f1(_mean_share(kept, operations.kept), _mean_share(kept, operations.to_keep)),
                _mean_share(deleted, operations.deleted),
            )
        )
    return Sari(*map(fmean, zip(*by_order, strict=True)))


def _mean_share(part: Grams, whole: Grams) -> float:
    """The share of each n-gram's count, mean over the distinct n-grams of the whole."""
    return _share(sum(count / whole[gram] for gram, count in part.items()), len(whole))


def mean_sentence_sari(sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]]) -> Sari:
    """Mean of `sentence_sari` over a corpus; arguments and errors as for `corpus_sari`."""
    _check(sources, outputs, references)
    scores = [
        sentence_sari(source, output, choices)
        for source, output, *choices in zip(sources, outputs, *references, strict=True)
    ]
    return Sari(*(fmean(getattr(score, part) for score in scores) for part in ("add", "keep", "delete")))


def _check(sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    lengths = {len(sources), len(outputs), *map(len, references)}
    if len(lengths) != 1 or not references or not sources:
        raise AggdecError(
            f"SARI needs as many outputs and references as sources, at least one: {len(sources)} sources, "
            f"{len(outputs)} outputs, references {[len(part) for part in references]}"
        )
