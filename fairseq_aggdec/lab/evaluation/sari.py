"""SARI, the metric of text simplification (Xu et al. 2016, "Optimizing Statistical Machine Translation for Text
Simplification"); papers/000 Table 4.

n-grams of up to four tokens that the output adds to the source, keeps of it and deletes from it, against what the
references add, keep and delete, an n-gram that only some references keep counting in part. Two programs are in use,
whose numbers differ; both are here:

- `corpus_sari` is that of EASSE (Alva-Manchego et al. 2019), by its defaults: counts are summed over the corpus; for
  each order, F1 of adding, keeping and deleting; mean over orders and operations. Text is lowercased and tokenised by
  mteval's rules (`13a`).
- `sentence_sari` is that of the authors' own script, for one sentence; a corpus scores its mean. For each order, F1 of
  adding and keeping, precision of deleting; of n-grams that are kept or deleted the shares are averaged over distinct
  n-grams. A deletion is right there only as far as the references have less of the n-gram than was deleted, where EASSE
  has less of it than the source. Text is lowercased and split at spaces.

In both, a share of nothing is 0: an output that rightly changes nothing scores 0 for adding and deleting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.evaluation.gleu import ngrams

ORDERS = (1, 2, 3, 4)

Grams = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class Sari:
    """The score and its parts, 0 to 1."""

    add: float
    keep: float
    delete: float

    @property
    def score(self) -> float:
        """Their mean."""
        return (self.add + self.keep + self.delete) / 3


@dataclass
class _Operations:
    """n-grams of one order in one sentence, all counts of source and output times the number of references."""

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
        """What was done and what was wanted: added, kept, deleted."""
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


@dataclass
class _CorpusTotals:
    operations: list[_Totals] = field(default_factory=lambda: [_Totals() for _ in range(3)])


def corpus_sari(sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]]) -> Sari:
    """SARI of a corpus as EASSE has it.

    Args:
        sources: text, one sentence each.
        outputs: their simplifications.
        references: one list a reference.

    Raises:
        AggdecError: the numbers of sentences differ, or there is nothing to score.
    """
    _check(sources, outputs, references)
    tokenise = Tokenizer13a()
    totals = {order: _CorpusTotals() for order in ORDERS}
    for sentence in zip(sources, outputs, *references, strict=True):
        tokens = [tokenise(text.lower()).split() for text in sentence]
        for order in ORDERS:
            source, output, *wanted = (ngrams(part, order) for part in tokens)
            for total, pair in zip(
                totals[order].operations, _Operations.of(source, output, wanted).pairs(), strict=True
            ):
                total.add(*pair)
    by_order = ([total.f1() for total in totals[order].operations] for order in ORDERS)
    return Sari(*map(fmean, zip(*by_order, strict=True)))


def sentence_sari(source: str, output: str, references: Sequence[str]) -> Sari:
    """SARI of one sentence as the authors' script has it.

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
    """Mean over the distinct n-grams of the whole."""
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
