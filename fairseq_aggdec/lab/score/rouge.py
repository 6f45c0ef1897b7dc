"""ROUGE (Lin 2004), the metric of summarisation (papers/000 Table 10), by the package rouge-score.

The package agrees with ROUGE-1.5.5.pl except in the last digits. Scores are F1, mean over the documents; of several
references, the one with the highest F1 counts, for each kind of ROUGE separately. Words are runs of letters a to z and
digits, after lowercasing: text in other scripts has no words and scores 0.

A sentence ends at a `.`, `!` or `?` before a space. What the paper and files2rouge do is in docs/metrics.md.
"""

import logging
import re
from collections.abc import Sequence
from statistics import fmean

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")
"""of unigrams, of bigrams, of the longest common subsequence of the whole texts, and of those of sentences"""


def rouge(
    outputs: Sequence[str], references: Sequence[Sequence[str]], stem: bool = False
) -> list[float]:
    """F1 of a corpus of documents, 0 to 1, for each of `KINDS`; `references` has a list for each reference.

    `stem`: compare the stems of words by Porter's algorithm, as ROUGE-1.5.5.pl -m.
    """
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # takes seconds to import

    # it prints the name of its tokeniser
    logging.getLogger("absl").setLevel(logging.WARNING)
    scorer = RougeScorer(KINDS, use_stemmer=stem)
    scores: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for output, *choices in zip(outputs, *references, strict=True):
        best = scorer.score_multi(
            [_by_sentences(choice) for choice in choices], _by_sentences(output)
        )
        for kind in KINDS:
            scores[kind].append(best[kind].fmeasure)
    return [fmean(scores[kind]) for kind in KINDS]


def _by_sentences(text: str) -> str:
    return "\n".join(_SENTENCE_END.split(text.strip()))
