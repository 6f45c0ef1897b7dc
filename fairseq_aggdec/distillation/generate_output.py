"""Reads what fairseq-generate printed, also where a progress bar was printed into it.

fairseq writes its progress bar to standard error. In a file that caught both streams the bar stands before or within
other lines, and a search for lines that begin with `H-` misses some. Here lines are found wherever they begin, and the
bar is taken out of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from fairseq_aggdec.errors import AggdecError

_LINE = re.compile(r"(?<![A-Za-z0-9])([SHP])-(\d+)\t")
_BAR = re.compile(r"(?:\r *)? {0,2}\d{1,3}%\|[^|\r]*\| *\d+/\d+ \[[^\]\r]*\] *|\r *")
_SKIPPED = re.compile(r"samples have invalid sizes and will be skipped, max_positions=\((\d+), (\d+)\)")
_MOST_BARS = 4
"""A line that is broken more often is given up."""


@dataclass
class GeneratedSentence:
    """The lines of one sentence. Of a line in which a bar stood there are several readings: the bar may have stood
    within a word or between two; none of them may be right.

    Attributes:
        place: file and line of its first line.
        sources: readings of each S- line.
        hypotheses: readings of each H- line, without the score; none where the line is damaged.
        totals: score of each H- line; NaN where the line is damaged.
        scores: readings of each P- line by the number of scores in them: tokens of the hypothesis, EOS included.
        mended: whether a bar stood before or in one of its lines.
    """

    place: str
    sources: list[list[str]] = field(default_factory=list)
    hypotheses: list[list[str]] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    scores: list[dict[int, str]] = field(default_factory=list)
    mended: bool = False


@dataclass
class GenerateOutput:
    """The sentences of some outputs of fairseq-generate by their number.

    Attributes:
        sentences: by number in the split.
        limits: longest source and target that a run took, where its log says that it skipped longer ones.
    """

    sentences: dict[int, GeneratedSentence] = field(default_factory=dict)
    limits: list[tuple[int, int]] = field(default_factory=list)

    def add_file(self, path: Path) -> None:
        """Reads one file.

        Raises:
            AggdecError: it has a sentence that an earlier file has too, or none at all.
            OSError: it cannot be read.
        """
        own: dict[int, GeneratedSentence] = {}
        with path.open("rb") as lines:
            for place, raw in enumerate(lines, start=1):
                # The bar can stand within the bytes of a character: decoded again when it has been taken out.
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
    """The one line of fairseq-generate in a line of the file: kind, sentence number, readings of the rest, mended."""
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
    if len(pieces) - 1 > _MOST_BARS:  # most are before the line begins
        pieces = ["".join(pieces[:-_MOST_BARS]), *pieces[-_MOST_BARS:]]
    readings = []
    for gaps in product(("", " "), repeat=len(pieces) - 1):
        text = pieces[0] + "".join(gap + piece for gap, piece in zip(gaps, pieces[1:], strict=True))
        joined = _joined_characters(text)
        if joined and (reading := _LINE.search(joined)) and reading[0] == match[0]:
            readings.append(joined[reading.end() :])
    return match[1], int(match[2]), readings, True


def _distinct(readings: Sequence[str]) -> list[str]:
    """Each reading once, its words with single spaces between them."""
    return list(dict.fromkeys(" ".join(word for word in reading.split(" ") if word) for reading in readings))


def _joined_characters(text: str) -> str | None:
    """Characters whose bytes the bar stood between; None if some bytes still make no character."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeDecodeError:
        return None


def _score_and_text(rest: str) -> tuple[float, str] | None:
    """The parts of `score TAB text`; None where there is no number or no text field."""
    score, separator, text = rest.partition("\t")
    try:
        value = float(score)
    except ValueError:
        return None
    return (value, text) if separator and "\t" not in text else None
