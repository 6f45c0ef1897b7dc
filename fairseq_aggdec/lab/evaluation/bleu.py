"""BLEU (Papineni et al. 2002) by sacrebleu (Post 2018), of running text and of tokens.

papers/000 §4.2.1: tokenised BLEU, for WMT14 English-German with compound splitting as in fairseq's
`scripts/compound_split_bleu.sh`: a hyphen between two characters becomes a token of its own, `##AT##-##AT##`, in
output and reference. One pass from left to right, whose matches do not overlap, as there: `a-b-c` becomes `a
##AT##-##AT## b-c`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sacrebleu

from fairseq_aggdec.data import subwords

_HYPHEN = re.compile(r"(\S)-(\S)")


def detokenised_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]], language: str | None) -> float:
    """Returns sacrebleu's BLEU (its own 13a tokens, mixed case), 0 to 100.

    Args:
        outputs: Moses tokens joined by spaces, subwords joined already, one a sentence.
        references: running text as it was before any tokenisation; one list a reference.
        language: of the outputs; its rules put punctuation back to the words. None: the outputs are running text.
    """
    if language is not None:
        detokeniser = subwords.moses(language)
        outputs = [detokeniser.decode(line) for line in outputs]
    return float(sacrebleu.corpus_bleu(list(outputs), _known(references)).score)


def tokenised_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Returns BLEU of the tokens as they are, 0 to 100; not smoothed, as fairseq-score and multi-bleu.perl have it.

    fairseq-score never counts a word of the reference that is `<unk>` in the model's dictionary as right; here the
    references are the text, not what the dictionary made of it.

    Args:
        outputs: tokens joined by spaces, one a sentence.
        references: the same; one list a reference; of several, empty lines are no references.
    """
    score = sacrebleu.corpus_bleu(list(outputs), _known(references), smooth_method="none", force=True, tokenize="none")
    return float(score.score)


def _known(references: Sequence[Sequence[str]]) -> Any:
    """References with None for empty lines: of several, sentences may have some less."""
    return [[line or None for line in part] if len(references) > 1 else list(part) for part in references]


def compound_split(line: str) -> str:
    """Returns a line of tokens with hyphens within words as tokens of their own."""
    return _HYPHEN.sub(r"\1 ##AT##-##AT## \2", line)


def compound_split_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Returns `tokenised_bleu` after `compound_split` of outputs and references."""
    split = [[compound_split(line) for line in part] for part in (outputs, *references)]
    return tokenised_bleu(split[0], split[1:])
