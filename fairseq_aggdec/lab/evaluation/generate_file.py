"""Reads the files that `fairseq-generate --results-path` writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.shards.generate_output import GeneratedSentence, GenerateOutput


@dataclass
class Generated:
    """One sentence of a generate file, in subwords, with its first hypothesis."""

    source: str
    """empty where there is no `S-` line"""
    hypothesis: str
    score: float
    """in base 2"""
    token_scores: tuple[float, ...]
    """in base 2, EOS included; empty where there is no `P-` line"""


def read_generate_file(path: Path) -> dict[int, Generated]:
    """Returns the sentences of a generate file by their number in the data set.

    Raises:
        AggdecError: the file holds no hypothesis, or a line is damaged (the message names it).
    """
    output = GenerateOutput()
    output.add_file(path)
    sentences = sorted(output.sentences.items())
    return {number: _generated(number, sentence) for number, sentence in sentences if sentence.hypotheses}


def _generated(number: int, sentence: GeneratedSentence) -> Generated:
    """The sentence with its first hypothesis, which is the best one of an n-best list."""
    if len(sentence.sources) > 1:
        raise AggdecError(f"{sentence.place}: sentence {number} comes more than once; give the output of one run")
    source, token_scores = (sentence.sources or [""])[0], (sentence.token_scores or [()])[0]
    return Generated(source, sentence.hypotheses[0], sentence.scores[0], token_scores)


def join_subwords(line: str, separator: str = "@@ ") -> str:
    """Returns the tokens of a line of subwords."""
    return (line + " ").replace(separator, "").rstrip()
