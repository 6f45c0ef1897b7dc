"""The search options of a benchmark, which are those of fairseq-generate."""

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
    """Options of the search and of reading the sources, the same for all modes."""

    generation: Mapping[str, Any] = field(default_factory=dict)
    """fairseq's generation options that were given"""
    block_ngrams: bool = False
    """whether this plugin's modes ban repeated n-grams where fairseq's own search does not, as on every CPU"""
    truncate_source: bool = False
    """whether longer sources are cut to `max_source_positions`"""
    max_source_positions: int | None = None
    """longest source in tokens, EOS included; None for fairseq's default"""

    @classmethod
    def of(cls, args: argparse.Namespace) -> "SearchSettings":
        """The settings of a command line; options that the command does not have keep their defaults."""
        return cls(
            generation=given_search_options(args),
            block_ngrams=getattr(args, "block_ngrams", False),
            truncate_source=getattr(args, "truncate_source", False),
            max_source_positions=getattr(args, "max_source_positions", None),
        )

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from the defaults, under fairseq's names, for the record."""
        others = {
            "block_ngrams": self.block_ngrams,
            "truncate_source": self.truncate_source,
            "max_source_positions": self.max_source_positions,
        }
        return {**self.generation, **{name: value for name, value in others.items() if value}}

    @property
    def task_options(self) -> dict[str, Any]:
        """The options that belong to the task, which reads the sources."""
        cut: dict[str, Any] = {"truncate_source": True} if self.truncate_source else {}
        return cut if self.max_source_positions is None else {**cut, "max_source_positions": self.max_source_positions}

    def check_lengths(self, sizes: Sequence[int]) -> None:
        """Refuse sources longer than `max_source_positions`, as fairseq-generate does.

        Args:
            sizes: length of each source in tokens, EOS included.

        Raises:
            AggdecError: a source is too long; the message names the first one.
        """
        longest = math.inf if self.max_source_positions is None else self.max_source_positions
        number = next((number for number, size in enumerate(sizes) if size > longest), None)
        if number is not None:
            raise AggdecError(
                f"sentence {number} has {sizes[number]} tokens, more than --max-source-positions {longest}: add "
                "--truncate-source, or raise it"
            )

    def check_peers(self, modes: Sequence[Mode]) -> None:
        """Refuse search options that another program does not have: its outputs would not be comparable.

        Raises:
            AggdecError: a mode lacks an option; the message names both.
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
        if mode.nat is not None:  # it predicts lengths and refines whole sentences: no search option applies
            return [*self.generation, *(["block_ngrams"] if self.block_ngrams else [])]
        if mode.peer == CTRANSLATE2:
            return [name for name in _CTRANSLATE2_LACKS if name in self.generation]
        return []


def as_options(given: Mapping[str, Any]) -> str:
    """The options as they are written on a command line.

    Args:
        given: from `SearchSettings.given`.
    """
    return " ".join(
        option_name(name) if value is True else f"{option_name(name)} {value:g}" for name, value in given.items()
    )
