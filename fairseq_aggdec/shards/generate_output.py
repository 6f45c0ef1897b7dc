"""Reading outputs of fairseq-generate: its S-, H- and P- lines, and targets for training made of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text
from fairseq_aggdec.shards.data_bin import DataBin, Tokens

_LINE = re.compile(r"([SHP])-(\d+)\t(.*)")
_BAR = re.compile(r"\d{1,3}%\|[^|]*\| *\d+/\d+ \[")
_SKIPPED = re.compile(r"samples have invalid sizes and will be skipped, max_positions=\((\d+), (\d+)\)")
_NAMED = 10
"""the most sentences that a message names"""


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


@dataclass
class GenerateOutput:
    """The sentences of one or more outputs of fairseq-generate."""

    sentences: dict[int, GeneratedSentence] = field(default_factory=dict)
    """by their number in the split"""
    limits: list[tuple[int, int]] = field(default_factory=list)
    """the longest source and target of each run that logged that it skipped longer ones"""

    def add_file(self, path: Path) -> None:
        """Read one file.

        Raises:
            AggdecError: it has no hypothesis, a damaged line, or a sentence that an earlier file has, too.
            OSError: it cannot be read.
        """
        own: dict[int, GeneratedSentence] = {}
        with path.open("rb") as lines:
            for place, raw in enumerate(lines, start=1):
                line = decode_text(raw, str(path), place).rstrip("\r\n")
                if _BAR.search(line) and _LINE.search(line):
                    raise AggdecError(
                        f"{path}, line {place}: a progress bar stands in it; decode again with --no-progress-bar, or "
                        "keep standard error apart"
                    )
                if limits := _SKIPPED.search(line):
                    self.limits.append((int(limits[1]), int(limits[2])))
                if found := _LINE.match(line):
                    sentence = own.setdefault(int(found[2]), GeneratedSentence(f"{path}, line {place}"))
                    _add_line(sentence, found[1], found[3], f"{path}, line {place}")
        if not any(sentence.hypotheses for sentence in own.values()):
            raise AggdecError(f"{path}: holds no H- lines; was it written by fairseq-generate, and is it complete?")
        for number, sentence in own.items():
            if other := self.sentences.get(number):
                raise AggdecError(f"{sentence.place}: sentence {number} again, after {other.place}; one is too many")
            self.sentences[number] = sentence


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
        raise AggdecError(f"{place}: this {kind}- line is damaged; decode it again") from error


def _single_spaced(text: str) -> str:
    return " ".join(word for word in text.split(" ") if word)


def gather_generated(
    files: Sequence[Path], data: DataBin, split: str, max_source_len: int | None = None
) -> list[Tokens | None]:
    """The best hypothesis for each sentence of a split, EOS included; None where it was skipped for its length.

    Args:
        files: outputs of fairseq-generate without --remove-bpe, together the whole split.
        data: the data that were decoded.
        split: the split's name.
        max_source_len: the longest source, EOS included, that was decoded; longer ones may be missing. Not needed where
            a file has fairseq-generate's message about sentences that it skips.

    Raises:
        AggdecError: a sentence is missing, damaged, from other data, or not of the dictionary; the message names it.
    """
    output = GenerateOutput()
    for path in files:
        output.add_file(path)
    sources, references = data.source(split), data.target(split)
    if beyond := sorted(number for number in output.sentences if number >= len(sources)):
        raise AggdecError(
            f"{output.sentences[beyond[0]].place}: sentence {beyond[0]}, but {split} in {data.folder} has only "
            f"{len(sources)} sentences; was it decoded from other data?"
        )
    may_miss = sources.sizes > (max_source_len or np.inf)
    for longest_source, longest_target in output.limits:
        may_miss |= (sources.sizes > longest_source) | (references.sizes > longest_target)
    missing = [number for number in range(len(sources)) if number not in output.sentences and not may_miss[number]]
    if missing:
        named = ", ".join(map(str, missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")
        raise AggdecError(
            f"{', '.join(map(str, files))}: no line at all of {len(missing):,} sentences ({named}) of {split}; decode "
            f"{split} to the end, and if fairseq-generate skipped them for their length, say --max-source-len"
        )
    targets: list[Tokens | None] = [None] * len(sources)
    for number, sentence in output.sentences.items():
        for source in sentence.sources:
            if not np.array_equal(encode(source, data.source_dictionary), sources[number]):
                raise AggdecError(
                    f"{sentence.place}: the source of sentence {number} is not that of the data: it was decoded from "
                    "other data, or printed with --remove-bpe or --post-process"
                )
        targets[number] = _target(number, sentence, data.target_dictionary)
    return targets


def encode(text: str, dictionary: Dictionary) -> Tokens:
    """The symbol numbers of subwords joined by spaces, and EOS; -1 for a subword that is not in the dictionary."""
    symbols = text.split(" ") if text else []
    known = [-1 if symbol not in dictionary else dictionary.index(symbol) for symbol in symbols]
    return np.array([*known, dictionary.eos()], dtype=np.int32)


def _target(number: int, sentence: GeneratedSentence, dictionary: Dictionary) -> Tokens:
    """The first hypothesis.

    Raises:
        AggdecError: it is not there, not of the dictionary, or has not as many tokens as scores.
    """
    if len(sentence.hypotheses) < max(1, len(sentence.token_scores)):
        raise AggdecError(
            f"{sentence.place}: sentence {number} has {len(sentence.hypotheses)} H- lines, and "
            f"{len(sentence.token_scores)} P- lines; decode it again"
        )
    target = encode(sentence.hypotheses[0], dictionary)
    if target.min() < 0:
        raise AggdecError(
            f"{sentence.place}: the hypothesis of sentence {number} has symbols that are not in the target dictionary; "
            "it must be printed without --remove-bpe, --bpe and --replace-unk"
        )
    if sentence.token_scores and len(sentence.token_scores[0]) != len(target):
        raise AggdecError(
            f"{sentence.place}: the hypothesis of sentence {number} does not have as many tokens as scores in its P- "
            "line: a line is damaged"
        )
    return target
