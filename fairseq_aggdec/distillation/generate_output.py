"""Reading outputs of fairseq-generate, also those with parts of a progress bar in them.

fairseq writes its progress bar to standard error. In a file that holds both streams, parts of the bar stand before or
within other lines, and a search for lines that begin with `H-` would miss some. Here a line is found wherever it
begins, and the bar is removed from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from fairseq_aggdec.errors import AggdecError

_LINE = re.compile(r"(?<![A-Za-z0-9])([SHP])-(\d+)\t")
_BAR = re.compile(r"(?:\r *)? {0,2}\d{1,3}%\|[^|\r]*\| *\d+/\d+ \[[^\]\r]*\] *|\r *")
_SKIPPED = re.compile(r"samples have invalid sizes and will be skipped, max_positions=\((\d+), (\d+)\)")
_MOST_BARS = 4
"""the most parts of a bar that are removed from within one line"""


@dataclass
class GeneratedSentence:
    """The lines of one sentence.

    A line from which a part of a bar was removed can be read in several ways: the bar may have stood within a word or
    between two words. It is possible that no reading is right.

    Attributes:
        place: file and line number of the sentence's first line.
        sources: the readings of each S- line.
        hypotheses: the readings of each H- line, without the score; none where the line is damaged.
        totals: the score of each H- line; NaN where the line is damaged.
        scores: the readings of each P- line by the number of scores in them, which is the hypothesis's number of
            tokens, EOS included.
        mended: whether a part of a bar was removed from one of the lines, or from before it.
    """

    place: str
    sources: list[list[str]] = field(default_factory=list)
    hypotheses: list[list[str]] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    scores: list[dict[int, str]] = field(default_factory=list)
    mended: bool = False


@dataclass
class GenerateOutput:
    """The sentences of one or more outputs of fairseq-generate.

    Attributes:
        sentences: by their number in the split.
        limits: the longest source and target of each run that logged that it skipped longer ones.
    """

    sentences: dict[int, GeneratedSentence] = field(default_factory=dict)
    limits: list[tuple[int, int]] = field(default_factory=list)

    def add_file(self, path: Path) -> None:
        """Reads one file.

        Raises:
            AggdecError: it has no sentence, or one that an earlier file has too.
            OSError: it cannot be read.
        """
        with path.open("rb") as lines:
            self.add_lines(lines, str(path))

    def add_lines(self, lines: Iterable[bytes], path: str) -> None:
        """As `add_file`, of the lines of an output with this name."""
        own: dict[int, GeneratedSentence] = {}
        for place, raw in enumerate(lines, start=1):
            # the bar can stand within the bytes of a character: decoded again when it has been removed
            line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
            if limits := _SKIPPED.search(line):
                self.limits.append((int(limits[1]), int(limits[2])))
            if found := _find(line):
                kind, number, readings, mended = found
                sentence = own.setdefault(number, GeneratedSentence(f"{path}, line {place}"))
                sentence.mended |= mended
                _add_line(sentence, kind, readings)
        if not any(sentence.hypotheses for sentence in own.values()):
            raise AggdecError(f"{path}: holds no H- lines; was it written by fairseq-generate, and is it complete?")
        for number, sentence in own.items():
            if other := self.sentences.get(number):
                raise AggdecError(f"{sentence.place}: sentence {number} again, after {other.place}; one is too many")
            self.sentences[number] = sentence


def _add_line(sentence: GeneratedSentence, kind: str, readings: list[str]) -> None:
    if kind == "S":
        sentence.sources.append(_distinct(readings))
    elif kind == "P":
        sentence.scores.append({len(reading.split()): reading for reading in readings})
    else:
        parts = [part for part in map(_score_and_text, readings) if part is not None]
        sentence.totals.append(parts[0][0] if parts else math.nan)
        sentence.hypotheses.append(_distinct([text for _, text in parts]))


def _find(line: str) -> tuple[str, int, list[str], bool] | None:
    """The line of fairseq-generate in a line of the file: kind, sentence number, readings of the rest, mended?"""
    if "\r" not in line and "%|" not in line:
        match = _LINE.search(line)
        if match is None:
            return None
        rest = _joined_characters(line[match.end() :])
        return match[1], int(match[2]), [] if rest is None else [rest], match.start() > 0
    pieces = _BAR.split(line)
    match = _LINE.search("".join(pieces))
    if match is None:
        return None
    if len(pieces) - 1 > _MOST_BARS:  # most of them stand before the line
        pieces = ["".join(pieces[:-_MOST_BARS]), *pieces[-_MOST_BARS:]]
    readings = []
    for gaps in product(("", " "), repeat=len(pieces) - 1):
        text = pieces[0] + "".join(gap + piece for gap, piece in zip(gaps, pieces[1:], strict=True))
        joined = _joined_characters(text)
        if joined and (reading := _LINE.search(joined)) and reading[0] == match[0]:
            readings.append(joined[reading.end() :])
    return match[1], int(match[2]), readings, True


def _distinct(readings: Sequence[str]) -> list[str]:
    """The different readings, with single spaces between words."""
    return list(dict.fromkeys(" ".join(word for word in reading.split(" ") if word) for reading in readings))


def _joined_characters(text: str) -> str | None:
    """The text with its undecoded bytes joined to characters; None if some bytes are no character."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeDecodeError:
        return None


def _score_and_text(rest: str) -> tuple[float, str] | None:
    """The two fields of `SCORE<TAB>TEXT`; None where it is something else."""
    score, separator, text = rest.partition("\t")
    try:
        value = float(score)
    except ValueError:
        return None
    return (value, text) if separator and "\t" not in text else None
