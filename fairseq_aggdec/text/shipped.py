"""The small models that come with this package: what `load.shipped` loads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ShippedModel:
    """A trained model, with what its text needs, and how `aggdec demo` shows it."""

    name: str
    title: str
    source_language: str
    """also in the name of its dictionary, dict.LANGUAGE.txt"""
    target_language: str
    tokenizer: str
    """the value of fairseq-interactive's --tokenizer"""
    longest: int
    """subwords of the longest sentence that it decodes well (docs/corrector.md)"""
    modes: tuple[str, ...]
    """names of `lab.benchmarking.modes.Mode`, in the order of the demo's table"""
    shown: str
    """the mode whose blocks the demo shows"""
    drafter: str | None = None
    """the drafter's file beside `model.pt`"""

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return Path(__file__).parents[1] / "demo" / self.name


SHIPPED = {
    "gec": ShippedModel(
        name="gec",
        title="Grammar correction",
        source_language="en",
        target_language="en",
        tokenizer="as_written",
        longest=81,
        modes=("beam5", "aggressive-beam:5", "beam1", "greedy", "iad"),
        shown="iad",
    ),
    "mt": ShippedModel(
        name="mt",
        title="English-German translation",
        source_language="en",
        target_language="de",
        tokenizer="moses",
        longest=51,
        modes=("beam5", "aggressive-beam:5", "beam1", "greedy", "gad", "gad++", "gad++:5:3"),
        shown="gad",
        drafter="drafter.pt",
    ),
}

CAREFUL: dict[str, Any] = {"mode": "iad++", "top_beta": 5, "tolerance": 2.0}
"""arguments of `Model.decode` by which the shipped corrector damages least (docs/corrector.md)"""


def longest_learnt(checkpoint: Path) -> int | None:
    """The `longest` of a shipped model by its checkpoint; None for any other, which does not say what it has learnt."""
    return next((own.longest for own in SHIPPED.values() if own.folder == checkpoint.resolve().parent), None)
