"""BLEU of running text, by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence

import sacrebleu

from fairseq_aggdec.data import subwords


def detokenised_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]], language: str) -> float:
    """Returns sacrebleu's BLEU (its own 13a tokens, mixed case), 0 to 100.

    Args:
        outputs: Moses tokens joined by spaces, subwords joined already, one a sentence.
        references: running text as it was before any tokenisation; one list a reference.
        language: of the outputs; its rules put punctuation back to the words.
    """
    detokeniser = subwords.moses(language)
    text = [detokeniser.decode(line) for line in outputs]
    return float(sacrebleu.corpus_bleu(text, [list(part) for part in references]).score)
