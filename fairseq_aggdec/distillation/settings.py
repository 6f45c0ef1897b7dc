"""What the targets of a shard depend on; it stands at the head of the shard's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

MAX_TOKENS = 4000
"""source tokens a batch, with padding, unless another number is asked for"""


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
    """Shards of one distillation agree in all of this.

    Attributes:
        split: its name.
        data: fingerprints of its two sides and of the dictionaries.
        teacher: SHA-256 of each checkpoint file, in the given order.
        search: options of the beam search.
        longest_source: longer sources (EOS included) are skipped.
        max_tokens, batch_size: limits of a batch.
        precision: `fp32`, `fp16` or `bf16`.
    """

    split: str
    data: dict[str, str]
    teacher: list[str]
    longest_source: int
    max_tokens: int
    batch_size: int | None = None
    precision: str = "fp32"
    search: SearchOptions = field(default_factory=SearchOptions)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ShardSettings:
        """The inverse of `as_dict`.

        Raises:
            TypeError: a name is missing or unknown.
        """
        return cls(**{**values, "search": SearchOptions(**values["search"])})

    def difference(self, other: ShardSettings, mine: str, theirs: str) -> str | None:
        """`difference` of all that they hold."""
        return difference(_flat(self.as_dict()), _flat(other.as_dict()), mine, theirs)


def difference(own: Mapping[str, Any], others: Mapping[str, Any], mine: str, theirs: str) -> str | None:
    """What differs between settings by name, for an error message: `beam: 5 MINE, 4 THEIRS` with the words given.

    Fingerprints are cut short; None if nothing differs.
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
    """Fingerprints are told apart by their first digits."""
    if isinstance(value, list):
        return ":".join(map(_short, value))
    text = str(value)
    return text[:12] if len(text) == 64 else text
