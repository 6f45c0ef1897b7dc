"""ROUGE (Lin 2004), the metric of summarisation, by the package rouge-score; papers/000 Table 10.

The package does what ROUGE-1.5.5.pl does, up to the last digits. F1, mean over the documents; of several references the
one with the highest F1 counts, for each kind by itself. Words are runs of the letters a to z and of digits, after
lowercasing: text in other scripts has none and scores 0.

The paper follows BART, whose authors tokenise with Stanford's PTB tokeniser and call files2rouge: ROUGE-1.5.5.pl with
R-L of the summary's sentences (R-Lsum here), without stemming as it stands today, though once with it. Here a sentence
ends at a `.`, `!` or `?` before a space; the tokenisation can be given, and matters little, since punctuation is
dropped. ROUGE-1.5.5.pl's means come from resampling: they differ by chance in the last digit.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from fairseq_aggdec.errors import AggdecError

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class Rouge:
    """F1, 0 to 1."""

    rouge1: float
    """unigrams"""
    rouge2: float
    """bigrams"""
    rouge_l: float
    """longest common subsequence of the whole texts"""
    rouge_lsum: float
    """longest common subsequences of sentences"""


def rouge(outputs: Sequence[str], references: Sequence[Sequence[str]], stem: bool = False) -> Rouge:
    """ROUGE of a corpus.

    Args:
        outputs: a document each.
        references: one list a reference.
        stem: compare the stems of words (Porter's), as ROUGE-1.5.5.pl -m.

    Raises:
        AggdecError: rouge-score is not installed, the numbers of documents differ, or there is nothing to score.
    """
    try:
        from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # takes seconds to import
    except ImportError:
        raise AggdecError("ROUGE needs the package rouge-score: pip install rouge-score") from None
    if len({len(outputs), *map(len, references)}) != 1 or not references or not outputs:
        raise AggdecError(
            f"ROUGE needs as many references as outputs, at least one: {len(outputs)} outputs, "
            f"references {[len(part) for part in references]}"
        )
    logging.getLogger("absl").setLevel(logging.WARNING)  # it tells about its tokeniser
    kinds = ("rouge1", "rouge2", "rougeL", "rougeLsum")
    scorer = RougeScorer(kinds, use_stemmer=stem)
    scores: dict[str, list[float]] = {kind: [] for kind in kinds}
    for output, *choices in zip(outputs, *references, strict=True):
        best = scorer.score_multi([_by_sentences(choice) for choice in choices], _by_sentences(output))
        for kind in kinds:
            scores[kind].append(best[kind].fmeasure)
    return Rouge(*(fmean(scores[kind]) for kind in kinds))


def _by_sentences(text: str) -> str:
    return "\n".join(_SENTENCE_END.split(text.strip()))
