"""BLEU (Papineni et al. 2002) by sacrebleu (Post 2018), of running text and of tokens.

Of tokens there are two, with and without compounds split as by fairseq's `scripts/compound_split_bleu.sh`: in output
and reference, a hyphen between two characters becomes a token by itself, `##AT##-##AT##`. As in that script, matches
do not overlap: `a-b-c` becomes `a ##AT##-##AT## b-c`. Which BLEU the papers report: docs/metrics.md.
"""

import re
from collections.abc import Sequence
from typing import Any

import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesDetokenizer

_OF_TOKENS: dict[str, Any] = {
    "smooth_method": "none",
    "force": True,
    "tokenize": "none",
}
_HYPHEN = re.compile(r"(\S)-(\S)")


def detokenised_bleu(
    outputs: Sequence[str], references: Sequence[Sequence[str]], language: str | None
) -> float:
    """Return sacrebleu's BLEU (13a tokenisation, mixed case), 0 to 100.

    Args:
        outputs: one sentence each, as Moses tokens joined by spaces, without subwords.
        references: running text before any tokenisation; one list for each reference.
        language: language of the outputs, for Moses' detokeniser; None if the outputs are running text.
    """
    if language is not None:
        detokeniser = MosesDetokenizer(language)
        outputs = [detokeniser.detokenize(line.split()) for line in outputs]
    return float(sacrebleu.corpus_bleu(list(outputs), _known(references)).score)


def tokenised_bleu(
    outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> float:
    """Return BLEU of the given tokens, 0 to 100, without smoothing, as fairseq-score and multi-bleu.perl.

    It differs from fairseq-score where the reference has words that are `<unk>` in the model's dictionary:
    fairseq-score always counts them as wrong.

    Args:
        outputs: one sentence each, as tokens joined by spaces.
        references: tokens likewise, one list for each reference. With several lists, an empty line means that the
            sentence lacks that reference.
    """
    return float(
        sacrebleu.corpus_bleu(list(outputs), _known(references), **_OF_TOKENS).score
    )


def signature(tokens: bool = False) -> str:
    """sacrebleu's signature of `detokenised_bleu`, or of `tokenised_bleu`, without the count of references."""
    bleu = BLEU(**(_OF_TOKENS if tokens else {}))
    bleu.num_refs = 1  # else it wants to have scored something
    return str(bleu.get_signature()).partition("|")[2]


def _known(references: Sequence[Sequence[str]]) -> Any:
    """References in sacrebleu's form: with several lists, None for an empty line."""
    return [
        [line or None for line in part] if len(references) > 1 else list(part)
        for part in references
    ]


def compound_split(line: str) -> str:
    """Return a line of tokens in which each hyphen within a word is a token by itself."""
    return _HYPHEN.sub(r"\1 ##AT##-##AT## \2", line)


def compound_split_bleu(
    outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> float:
    """Return `tokenised_bleu` after `compound_split` of outputs and references."""
    split = [[compound_split(line) for line in part] for part in (outputs, *references)]
    return tokenised_bleu(split[0], split[1:])
