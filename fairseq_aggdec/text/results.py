"""What `Model.decode` returns: for each text the new text, its sentences and, for correction, its edits."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Edit:
    """One change of a text. All edits of a text, applied together, make its correction."""

    offset: int
    """where the changed part begins, in characters of the source"""
    length: int
    """its length in characters; 0 for an insertion"""
    replacement: str
    """what stands there in the correction"""

    @property
    def end(self) -> int:
        """Where the changed part ends, in characters of the source."""
        return self.offset + self.length


@dataclass(frozen=True)
class Hypothesis:
    """One entry of an n-best list."""

    text: str
    tokens: list[str]
    """subwords, EOS excluded"""
    score: float
    """as in fairseq-generate's H- lines"""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a text, and its output."""

    source: str
    start: int
    """source == text[start:end], in characters"""
    end: int
    text: str
    tokens: list[str] = field(default_factory=list)
    """subwords of the model's best output, EOS excluded"""
    score: float = 0.0
    """of the model's best output, as in fairseq-generate's H- lines"""
    nbest: list[Hypothesis] = field(default_factory=list)
    """best first"""
    iterations: int = 0
    """passes of the verifier"""
    drafted: int = 0
    accepted: int = 0
    """draft tokens that became output"""
    note: str | None = None
    """why the source stands in the output's place; None: it does not"""


@dataclass(frozen=True)
class Result:
    """A text, and its output."""

    source: str
    text: str
    """the sentences' outputs, with the white space between them that the source has"""
    sentences: list[Sentence]
    edits: list[Edit] = field(default_factory=list)
    """of a correction, in order, not overlapping; empty for a translation"""

    @property
    def notes(self) -> list[str]:
        """What was not decoded, a line a sentence, and why."""
        return [
            f"'{s.source[:60]}': {s.note}" for s in self.sentences if s.note is not None
        ]
