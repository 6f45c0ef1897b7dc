"""Reads the files that `fairseq-generate --results-path` writes: their S-, H- and P- lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text

_LINE = re.compile(r"([SHP])-(\d+)\t(.*)")
_BAR = re.compile(r"\d{1,3}%\|[^|]*\| *\d+/\d+ \[")


@dataclass
class GeneratedSentence:
    """The lines of one sentence, of several hypotheses the best one's; single spaces stand between subwords."""

    source: str | None = None
    """of the S- line"""
    hypothesis: str | None = None
    """of the H- line"""
    score: float = 0.0
    """of the H- line, in base 2"""
    token_scores: Sequence[float] = ()
    """of the P- line: one for each token of the hypothesis, EOS included"""


def read_generate_file(path: Path) -> dict[int, GeneratedSentence]:
    """The sentences with a hypothesis, by their id in the data set.

    Raises:
        AggdecError: the file holds no hypothesis or several runs, or a line is damaged (the message names it).
    """
    sentences: dict[int, GeneratedSentence] = {}
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, start=1):
            line = decode_text(raw, str(path), number).rstrip("\r\n")
            place = f"{path}, line {number}"
            if _BAR.search(line) and _LINE.search(line):
                raise AggdecError(
                    f"{place}: a progress bar stands in it; decode again with --no-progress-bar, or keep standard "
                    "error apart"
                )
            if matched := _LINE.match(line):
                kind, sentence, rest = matched.groups()
                found = sentences.setdefault(int(sentence), GeneratedSentence())
                if kind == "S" and found.source is not None:
                    raise AggdecError(
                        f"{place}: sentence {sentence} comes more than once; give the output of one run"
                    )
                try:
                    _add_line(found, kind, rest)
                except ValueError as error:
                    raise AggdecError(
                        f"{place}: this {kind}- line is damaged; decode it again"
                    ) from error
    decoded = {
        sentence: found
        for sentence, found in sorted(sentences.items())
        if found.hypothesis is not None
    }
    if not decoded:
        raise AggdecError(
            f"{path}: holds no H- lines; was it written by fairseq-generate, and is it complete?"
        )
    return decoded


def _add_line(sentence: GeneratedSentence, kind: str, rest: str) -> None:
    """Fill in what a line says; raises `ValueError` where it is damaged."""
    if kind == "S":
        sentence.source = _single_spaced(rest)
    elif kind == "P":
        sentence.token_scores = sentence.token_scores or [*map(float, rest.split())]
    else:
        score, text = rest.split("\t")
        if sentence.hypothesis is None:
            sentence.score = float(score)
            sentence.hypothesis = _single_spaced(text)


def _single_spaced(text: str) -> str:
    return " ".join(word for word in text.split(" ") if word)


def join_subwords(line: str) -> str:
    """Return the tokens of a line of subword-nmt's subwords."""
    return (line + " ").replace("@@ ", "").rstrip()
