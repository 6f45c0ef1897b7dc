"""SARI, the metric of text simplification (Xu et al. 2016, "Optimizing Statistical Machine Translation for Text
Simplification"); papers/000 Table 4.

SARI compares the n-grams of up to four tokens that the output adds to the source, keeps and deletes with those that the
references add, keep and delete; an n-gram that only some references keep counts in part.
As in EASSE (Alva-Manchego et al. 2019) with its defaults, counts are summed over the corpus, the score is the mean over
n-gram orders of the F1 of adding, keeping and deleting, and text is lowercased and tokenised by mteval's rules (`13a`).

Precision or recall of an empty set is 0: an output that rightly changes nothing scores 0 for adding and deleting.
"""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import numpy as np
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from fairseq_aggdec.lab.score.gleu import ngrams

ORDERS = (1, 2, 3, 4)

Grams = Counter[tuple[str, ...]]


def _operations(
    source: Grams, output: Grams, references: Sequence[Grams]
) -> list[tuple[Grams, Grams]]:
    """For adding, keeping and deleting: the n-grams of the output and those that the references want, in a sentence.

    An n-gram is added once; counts of source and output are multiplied by the count of references.
    """
    wanted: Grams = sum(references, Counter())
    added, to_add = (
        Counter(dict.fromkeys(grams.keys() - source.keys(), 1))
        for grams in (output, wanted)
    )
    source, output = (
        Counter({gram: count * len(references) for gram, count in grams.items()})
        for grams in (source, output)
    )
    return [
        (added, to_add),
        (source & output, source & wanted),
        (source - output, source - wanted),
    ]


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def corpus_sari(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> float:
    """SARI of a corpus of texts, a sentence each, 0 to 1; `references` has a list for each reference."""
    tokenise = Tokenizer13a()
    # right, done and wanted by order and operation
    totals = np.zeros((len(ORDERS), 3, 3), dtype=np.int64)
    for sentence in zip(sources, outputs, *references, strict=True):
        tokens = [tokenise(text.lower()).split() for text in sentence]
        for total, order in zip(totals, ORDERS, strict=True):
            source, output, *wanted = (ngrams(part, order) for part in tokens)
            pairs = _operations(source, output, wanted)
            total += [
                [(done & asked).total(), done.total(), asked.total()]
                for done, asked in pairs
            ]
    counts = totals.reshape(-1, 3).tolist()
    return fmean(
        _f1(_share(right, done), _share(right, wanted))
        for right, done, wanted in counts
    )
