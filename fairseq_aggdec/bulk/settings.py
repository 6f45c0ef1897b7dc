"""Limits that the command lines show, and how two sets of settings differ. Imports no fairseq."""

from collections.abc import Mapping
from typing import Any

from fairseq_aggdec.generation.modes import AGGRESSIVE_BEAM, BEAM

MAX_TOKENS = 4000
"""the default limit of a batch, in source tokens with padding"""
SHARD_SENTENCES = 500
"""the default number of different sources in a shard of distillation; a killed run loses no more"""
DECODINGS = (BEAM, AGGRESSIVE_BEAM)
"""a teacher's modes: fairseq's beam search, the default, and this plugin's, which gives the same hypotheses"""
STDIN = "stdin"
"""the file name of the saved standard input, and the first part of its outputs' names"""


def difference(
    ours: Mapping[str, Any], others: Mapping[str, Any], mine: str, theirs: str
) -> str | None:
    """The differing entries, for an error message; None if there are none.

    They read `beam: 5 MINE, 4 THEIRS`, with the given words `mine` and `theirs`; fingerprints are cut short.
    """
    differing = [
        f"{name}: {_short(ours.get(name))} {mine}, {_short(others.get(name))} {theirs}"
        for name in {**ours, **others}
        if ours.get(name) != others.get(name)
    ]
    return "; ".join(differing) or None


def _short(value: Any) -> str:
    """A value as text, of a fingerprint the first digits."""
    if isinstance(value, list):
        return ":".join(map(_short, value))
    text = str(value)
    return text[:12] if len(text) == 64 else text
