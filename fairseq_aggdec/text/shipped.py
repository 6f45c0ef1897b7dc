"""The small models that come with this package: what `load.shipped` loads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_aggdec.generation.modes import IAD_PLUS


@dataclass(frozen=True)
class ShippedModel:
    """A trained model, with what its text needs."""

    name: str
    source_language: str
    """also in the name of its dictionary, dict.LANGUAGE.txt"""
    target_language: str
    tokenizer: str
    """the value of fairseq-interactive's --tokenizer"""
    longest: int
    """subwords of the longest sentence that it decodes well (docs/corrector.md)"""
    drafter: str | None = None
    """the drafter's file beside `model.pt`"""

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return Path(__file__).parents[1] / "demo" / self.name


SHIPPED = {
    "gec": ShippedModel("gec", "en", "en", "as_written", longest=81),
    "mt": ShippedModel("mt", "en", "de", "moses", longest=51, drafter="drafter.pt"),
}

CAREFUL: dict[str, Any] = {"mode": IAD_PLUS, "top_beta": 5, "tolerance": 2.0}
"""arguments of `Model.decode` by which the shipped corrector damages least (docs/corrector.md)"""


def longest_learnt(checkpoint: Path) -> int | None:
    """The `longest` of a shipped model by its checkpoint; None for any other, which does not say what it has learnt."""
    return next(
        (
            own.longest
            for own in SHIPPED.values()
            if own.folder == checkpoint.resolve().parent
        ),
        None,
    )
