"""Reads the files that `fairseq-generate --results-path` writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines


@dataclass
class Generated:
    """One sentence of a generate file.

    Attributes:
        source: subwords of the `S-` line; empty if there is none.
        hypothesis: subwords of the (first) `H-` line.
        score: its score as printed, in base 2.
    """

    source: str = ""
    hypothesis: str = ""
    score: float = 0.0


def read_generate_file(path: Path) -> dict[int, Generated]:
    """Returns the sentences of a generate file by their number in the data set.

    Raises:
        AggdecError: the file holds no hypothesis, or a line is damaged (the message names it).
    """
    sentences: dict[int, Generated] = {}
    seen: set[int] = set()
    for number, line in enumerate(read_text_lines(path), start=1):
        kind, separator, rest = line.partition("-")
        if not separator or kind not in ("S", "H"):
            continue
        fields = rest.split("\t")
        if not fields[0].isdigit() or len(fields) != (2 if kind == "S" else 3):
            raise AggdecError(f"{path}, line {number}: not a line of fairseq-generate: {line.strip()[:60]!r}")
        index = int(fields[0])
        sentence = sentences.setdefault(index, Generated())
        if kind == "S":
            sentence.source = fields[1]
        elif index not in seen:  # with --nbest the first is the best
            seen.add(index)
            sentence.score, sentence.hypothesis = float(fields[1]), fields[2]
    if not seen:
        raise AggdecError(f"{path} holds no H- lines: was it written by fairseq-generate, and is it complete?")
    return {index: sentences[index] for index in sorted(seen)}


def join_subwords(line: str, separator: str = "@@ ") -> str:
    """Returns subwords as the tokens they came from."""
    return (line + " ").replace(separator, "").rstrip()
