"""Reads the files that `fairseq-generate --results-path` writes: their S-, H- and P- lines."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text

_LINE = re.compile(r"([SHP])-(\d+)\t(.*)")
_BAR = re.compile(r"\d{1,3}%\|[^|]*\| *\d+/\d+ \[")


@dataclass
class GeneratedSentence:
    """The lines of one sentence; single spaces stand between subwords."""

    place: str
    """file and line number of the sentence's first line"""
    sources: list[str] = field(default_factory=list)
    """of each S- line; there are several where a file holds several runs"""
    hypotheses: list[str] = field(default_factory=list)
    """of each H- line, the best one first"""
    scores: list[float] = field(default_factory=list)
    """of each H- line, in base 2"""
    token_scores: list[tuple[float, ...]] = field(default_factory=list)
    """of each P- line: one for each token of the hypothesis, EOS included"""


def read_generate_file(path: Path) -> dict[int, GeneratedSentence]:
    """The sentences with a hypothesis, by their number in the data set.

    Raises:
        AggdecError: the file holds no hypothesis or several runs, or a line is damaged (the message names it).
    """
    found: dict[int, GeneratedSentence] = {}
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, start=1):
            line, place = (
                decode_text(raw, str(path), number).rstrip("\r\n"),
                f"{path}, line {number}",
            )
            if _BAR.search(line) and _LINE.search(line):
                raise AggdecError(
                    f"{place}: a progress bar stands in it; decode again with --no-progress-bar, or keep standard "
                    "error apart"
                )
            if matched := _LINE.match(line):
                sentence = found.setdefault(int(matched[2]), GeneratedSentence(place))
                _add_line(sentence, matched[1], matched[3], place)
    found = {
        number: sentence
        for number, sentence in sorted(found.items())
        if sentence.hypotheses
    }
    if not found:
        raise AggdecError(
            f"{path}: holds no H- lines; was it written by fairseq-generate, and is it complete?"
        )
    for number, sentence in found.items():
        if len(sentence.sources) > 1:
            raise AggdecError(
                f"{sentence.place}: sentence {number} comes more than once; give the output of one run"
            )
    return found


def _add_line(sentence: GeneratedSentence, kind: str, rest: str, place: str) -> None:
    try:
        if kind == "S":
            sentence.sources.append(_single_spaced(rest))
        elif kind == "P":
            sentence.token_scores.append(tuple(map(float, rest.split())))
        else:
            score, text = rest.split("\t")
            sentence.scores.append(float(score))
            sentence.hypotheses.append(_single_spaced(text))
    except ValueError as error:
        raise AggdecError(
            f"{place}: this {kind}- line is damaged; decode it again"
        ) from error


def _single_spaced(text: str) -> str:
    return " ".join(word for word in text.split(" ") if word)


def join_subwords(line: str) -> str:
    """Return the tokens of a line of subword-nmt's subwords."""
    return (line + " ").replace("@@ ", "").rstrip()
