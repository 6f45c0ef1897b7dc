"""The settings that the targets of a shard depend on, recorded in the first line of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

MAX_TOKENS = 4000
"""the default limit of a batch, in source tokens with padding"""
DECODINGS = ("beam", "aggressive-beam")
"""fairseq's own beam search, which is the default, and this plugin's, which gives the same hypotheses"""


@dataclass(frozen=True)
class SearchOptions:
    """The teacher's beam search; names, meanings and defaults are those of fairseq-generate."""

    beam: int = 5
    lenpen: float = 1.0
    unkpen: float = 0.0
    max_len_a: float = 0.0
    max_len_b: int = 200
    min_len: int = 1
    no_repeat_ngram_size: int = 0
    temperature: float = 1.0


@dataclass(frozen=True)
class ShardSettings:
    """The settings that all shards of a distilled split have in common.

    Attributes:
        split: the split's name.
        data: fingerprints of its two sides and of the dictionaries.
        teacher: SHA-256 of each checkpoint, in the given order.
        search: the options of the beam search.
        longest_source: the most tokens of a source, EOS included; longer ones are skipped.
        max_tokens, batch_size: the limits of a batch.
        precision: `fp32`, `fp16` or `bf16`.
        decoding: what runs the search, one of `DECODINGS`.
    """

    split: str
    data: dict[str, str]
    teacher: list[str]
    longest_source: int
    max_tokens: int
    batch_size: int | None = None
    precision: str = "fp32"
    decoding: str = "beam"
    search: SearchOptions = field(default_factory=SearchOptions)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ShardSettings:
        """The inverse of `asdict`.

        Raises:
            TypeError: a name is missing or unknown.
        """
        return cls(**{**values, "search": SearchOptions(**values["search"])})

    def difference(self, other: ShardSettings, mine: str, theirs: str) -> str | None:
        """The `difference` between two settings."""
        return difference(_flat(asdict(self)), _flat(asdict(other)), mine, theirs)


def difference(own: Mapping[str, Any], others: Mapping[str, Any], mine: str, theirs: str) -> str | None:
    """The differing entries, for an error message; None if there are none.

    They read `beam: 5 MINE, 4 THEIRS`, with the given words `mine` and `theirs`; fingerprints are cut short.
    """
    differing = [
        f"{name}: {_short(own.get(name))} {mine}, {_short(others.get(name))} {theirs}"
        for name in {**own, **others}
        if own.get(name) != others.get(name)
    ]
    return "; ".join(differing) or None


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    flat = {name: value for name, value in values.items() if not isinstance(value, dict)}
    return flat | values["search"] | {f"data ({name})": value for name, value in values["data"].items()}


def _short(value: Any) -> str:
    """A value as text, of a fingerprint the first digits."""
    if isinstance(value, list):
        return ":".join(map(_short, value))
    text = str(value)
    return text[:12] if len(text) == 64 else text
