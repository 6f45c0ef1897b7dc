"""The small models that come with this package: what `load.shipped` loads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq_aggdec.demo import correction_guard, translation_guard
from fairseq_aggdec.generation.modes import IAD_PLUS
from fairseq_aggdec.text.results import Result


@dataclass(frozen=True)
class ShippedModel:
    """A trained model, with what its text needs."""

    name: str
    options: Mapping[str, Any]
    """arguments of `load`"""
    longest: int
    """subwords of the longest sentence that it decodes well (docs/corrector.md)"""
    after_decoding: Callable[[str, Result], Result]
    """(source, result): the result with the sentences, or their edits, that the model may be trusted with"""
    drafter: str | None = None
    """the drafter's file beside `model.pt`"""
    characters: Mapping[int, int] = field(default_factory=dict)
    """`Model.translate` reads a text with these replaced, as `str.translate` does"""

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return Path(__file__).with_name(self.name)


_ENGLISH = {"source_lang": "en", "target_lang": "en", "tokenizer": "as_written"}
_ENGLISH_GERMAN = {
    "source_lang": "en",
    "target_lang": "de",
    "tokenizer": "moses",
    "moses_no_dash_splits": True,
    "moses_no_escape": True,
}
SHIPPED = {
    "gec": ShippedModel("gec", _ENGLISH, 81, correction_guard.checked),
    "mt": ShippedModel(
        "mt",
        _ENGLISH_GERMAN,
        51,
        translation_guard.checked,
        drafter="drafter.pt",
        characters=translation_guard.PLAIN,
    ),
}

CAREFUL: dict[str, Any] = {"mode": IAD_PLUS, "top_beta": 5, "tolerance": 2.0}
"""arguments of `Model.decode` by which the shipped corrector damages least (docs/corrector.md)"""


def longest_learnt(checkpoint: Path) -> int | None:
    """The `longest` of a shipped model by its checkpoint; None for any other, which does not say what it has learnt."""
    folder = checkpoint.resolve().parent
    lengths = {shipped.folder: shipped.longest for shipped in SHIPPED.values()}
    return lengths.get(folder)
