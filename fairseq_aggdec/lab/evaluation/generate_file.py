"""Reads the files that `fairseq-generate --results-path` writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.distillation.generate_output import GeneratedSentence, GenerateOutput
from fairseq_aggdec.errors import AggdecError


@dataclass
class Generated:
    """One sentence of a generate file.

    Attributes:
        source: subwords of the `S-` line; empty if there is none.
        hypothesis: subwords of the first `H-` line.
        score: the hypothesis' score as printed, in base 2.
        token_scores: scores of the hypothesis' tokens and of EOS in base 2, with four decimals (`P-` line); empty if
            there is no such line.
    """

    source: str = ""
    hypothesis: str = ""
    score: float = 0.0
    token_scores: tuple[float, ...] = ()


def read_generate_file(path: Path) -> dict[int, Generated]:
    """Returns the sentences of a generate file by their number in the data set.

    Lines with a progress bar before or in them are found, and the bar is removed.

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
    readings = sentence.hypotheses[0]
    if len(readings) > 1 and len(sentence.scores) == len(sentence.hypotheses):
        # a progress bar stood within or between words: the right reading has as many tokens as there are scores
        readings = [reading for reading in readings if len(reading.split(" ")) + 1 in sentence.scores[0]]
    if len(readings) != 1 or not all(sentence.sources):
        raise AggdecError(f"{sentence.place}: a line of sentence {number} is damaged; decode it again")
    source = sentence.sources[0][0] if sentence.sources else ""
    tokens = len(readings[0].split()) + 1
    scores = sentence.scores[0].get(tokens, "") if sentence.scores else ""
    return Generated(source, readings[0], sentence.totals[0], _numbers(scores))


def _numbers(text: str) -> tuple[float, ...]:
    """Numbers separated by blanks; an empty tuple if one is damaged."""
    try:
        return tuple(map(float, text.split()))
    except ValueError:
        return ()


def join_subwords(line: str, separator: str = "@@ ") -> str:
    """Returns the tokens of a line of subwords."""
    return (line + " ").replace(separator, "").rstrip()
