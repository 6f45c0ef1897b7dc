"""How outputs are searched for while they are timed: as they were when they were scored."""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.lab.benchmarking.modes import CTRANSLATE2, Mode
from fairseq_aggdec.tasks.search_options import given_search_options

_CTRANSLATE2_LACKS = ("unkpen", "temperature")


@dataclass(frozen=True)
class SearchSettings:
    """Options of the search and of reading the sources; all modes have the same."""

    generation: Mapping[str, Any] = field(default_factory=dict)
    """fairseq's generation options, those that were given"""
    block_ngrams: bool = False
    """of this plugin's modes: ban repeated n-grams where fairseq's own blocker does nothing, as on every CPU"""
    truncate_source: bool = False
    max_source_positions: int | None = None
    """tokens of a source, EOS included; None for fairseq's default"""

    @classmethod
    def of(cls, args: argparse.Namespace) -> "SearchSettings":
        """What a command line says; commands that lack an option have its default."""
        return cls(
            generation=given_search_options(args),
            block_ngrams=getattr(args, "block_ngrams", False),
            truncate_source=getattr(args, "truncate_source", False),
            max_source_positions=getattr(args, "max_source_positions", None),
        )

    @property
    def given(self) -> dict[str, Any]:
        """What differs from the defaults, by fairseq's names of the fields; for the record."""
        others = {
            "block_ngrams": self.block_ngrams,
            "truncate_source": self.truncate_source,
            "max_source_positions": self.max_source_positions,
        }
        return {**self.generation, **{name: value for name, value in others.items() if value}}

    @property
    def reading(self) -> dict[str, Any]:
        """Options of the task that reads the sources."""
        cut: dict[str, Any] = {"truncate_source": True} if self.truncate_source else {}
        return cut if self.max_source_positions is None else {**cut, "max_source_positions": self.max_source_positions}

    def check_lengths(self, sizes: Sequence[int]) -> None:
        """As fairseq-generate does, take no sentence that is longer than asked for.

        Args:
            sizes: tokens of each source, EOS included.

        Raises:
            AggdecError: one is; the first is named.
        """
        longest = math.inf if self.max_source_positions is None else self.max_source_positions
        number = next((number for number, size in enumerate(sizes) if size > longest), None)
        if number is not None:
            raise AggdecError(
                f"sentence {number} has {sizes[number]} tokens, more than --max-source-positions {longest}: add "
                "--truncate-source, or raise it"
            )

    def check_peers(self, modes: Sequence[Mode]) -> None:
        """Refuse what another program cannot honour: its outputs would be other ones than those beside it.

        Raises:
            AggdecError: naming the mode and the options.
        """
        for mode in modes:
            lacking = self._lacking(mode)
            if lacking:
                raise AggdecError(
                    f"mode {mode.name} cannot honour {', '.join(map(option_name, lacking))}: leave out one of them"
                )
            if mode.peer == CTRANSLATE2 and self.generation.get("no_repeat_ngram_size") and not self.block_ngrams:
                raise AggdecError(
                    f"mode {mode.name} always bans repeated n-grams, which fairseq's search and this plugin's modes "
                    "do not do on a CPU: add --block-ngrams, or leave --no-repeat-ngram-size out"
                )

    def _lacking(self, mode: Mode) -> list[str]:
        if mode.nat is not None:  # refines whole sentences: only the lengths that it predicts count
            return [*self.generation, *(["block_ngrams"] if self.block_ngrams else [])]
        if mode.peer == CTRANSLATE2:
            return [name for name in _CTRANSLATE2_LACKS if name in self.generation]
        return []


def as_options(given: Mapping[str, Any]) -> str:
    """As they stand on a command line.

    Args:
        given: from `SearchSettings.given`.
    """
    return " ".join(
        option_name(name) if value is True else f"{option_name(name)} {value:g}" for name, value in given.items()
    )
