"""Reads the files that `fairseq-generate --results-path` writes."""

from __future__ import annotations

from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.shards.generate_output import GeneratedSentence, GenerateOutput


def read_generate_file(path: Path) -> dict[int, GeneratedSentence]:
    """Return the sentences with a hypothesis, by their number in the data set.

    Raises:
        AggdecError: the file holds no hypothesis or several runs, or a line is damaged (the message names it).
    """
    output = GenerateOutput()
    output.add_file(path)
    for number, sentence in output.sentences.items():
        if len(sentence.sources) > 1:
            raise AggdecError(f"{sentence.place}: sentence {number} comes more than once; give the output of one run")
    return {number: sentence for number, sentence in sorted(output.sentences.items()) if sentence.hypotheses}


def join_subwords(line: str) -> str:
    """Return the tokens of a line of subword-nmt's subwords."""
    return (line + " ").replace("@@ ", "").rstrip()
