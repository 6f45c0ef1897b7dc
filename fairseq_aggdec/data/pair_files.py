"""Sentence pairs in the files that a `prepare.yaml` names under `parallel`.

An entry, or each of a list of them, names one of

    {source: FILE, target: FILE}            two files, one sentence a line
    {file: FILE, columns: [0, 1]}           a table; its columns are separated by tabs
    {file: FILE, blocks: "*****"}           a sentence a line, a line of that text after each group of them
    {m2: FILE}                              gold edits: the target is what the first annotator makes of the sentence
    {corrections: FILE}                     a table of number, sentence, corrections: the target is the first of them,
                                            all are references
    {word_sentences: {lines: NUMBER}}       Chinese sentences made of words, and learners' errors in them: see
                                            fairseq_aggdec/data/word_sentences.py

`columns` also says which of a block's lines are source and target. What is read may then be changed:

    without: TEXT        this text is taken out of both sides
    treebank: true       Penn Treebank tokens become running text
    tokens: words        running text becomes words and marks, for languages that Moses' rules do not know
    tokens: characters   each character is a token: Chinese
    first: NUMBER        only so many pairs
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from fairseq_aggdec.data import ptb
from fairseq_aggdec.data.m2_file import parse_m2
from fairseq_aggdec.data.original_formats import characters
from fairseq_aggdec.data.references import CorrectedSentence, read_corrections, reference_columns
from fairseq_aggdec.data.sentence_pairs import Pair
from fairseq_aggdec.data.text_files import given_file, read_lines
from fairseq_aggdec.data.word_sentences import WordSentences
from fairseq_aggdec.data.words import split_words
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import open_lines

_FORMS = {"source", "target", "references", "file", "columns", "blocks", "m2", "corrections", "word_sentences"}
_KNOWN = _FORMS | {"without", "treebank", "tokens", "first"}
_TOKENS: dict[str, Callable[[str], str]] = {"words": split_words, "characters": characters}


def read_pairs(entry: dict[str, Any] | Sequence[dict[str, Any]], data: Path) -> Iterator[Pair]:
    """Yields the pairs of an entry, or of several, with single spaces.

    Args:
        entry: what `parallel` says of a split; see the module.
        data: the folder of the data sets.

    Raises:
        AggdecError: a file is absent, damaged or has another layout, or the entry says something unknown.
    """
    for item in [entry] if isinstance(entry, dict) else entry:
        if unknown := sorted(item.keys() - _KNOWN):
            raise AggdecError(f"parallel: unknown {', '.join(unknown)}; there are {', '.join(sorted(_KNOWN))}")
        change = _changes(item)
        for source, target in islice(_raw_pairs(item, data), item.get("first")):
            yield change(source), change(target)


def read_references(entry: dict[str, Any] | Sequence[dict[str, Any]], data: Path) -> Sequence[Iterable[str]]:
    """The references of a split, the sentences of each; none where there is only the target.

    Args:
        entry: what `parallel` says of the split.
        data: the folder of the data sets.

    Raises:
        AggdecError: a file is absent, damaged or has another layout.
    """
    if not isinstance(entry, dict):
        return []
    if "corrections" in entry:
        change = _changes(entry)
        corrected = islice(_corrected(entry, data), entry.get("first"))
        return reference_columns([[change(text) for text in sentence.corrections] for sentence in corrected])
    return [(" ".join(line.split()) for line in read_lines(data / file)) for file in entry.get("references", [])]


def _corrected(item: dict[str, Any], data: Path) -> Iterator[CorrectedSentence]:
    file = data / item["corrections"]
    return read_corrections(read_lines(file), str(file))


def _raw_pairs(item: dict[str, Any], data: Path) -> Iterator[Pair]:
    columns = item.get("columns", [0, 1])
    if "word_sentences" in item:
        return WordSentences.from_settings(item["word_sentences"]).pairs()
    if "corrections" in item:
        return ((sentence.source, sentence.corrections[0]) for sentence in _corrected(item, data))
    if "m2" in item:
        return _gold_pairs(given_file(data / item["m2"]))
    if "blocks" in item:
        return _block_pairs(data / item["file"], item["blocks"], columns)
    if "file" in item:
        file = data / item["file"]
        return zip(*(read_lines(file, column) for column in columns), strict=True)
    return _line_pairs(data / item["source"], data / item["target"])


def _gold_pairs(file: Path) -> Iterator[Pair]:
    with open_lines(file) as (lines, _):
        for sentence in parse_m2(lines, str(file)):
            yield " ".join(sentence.tokens), " ".join(sentence.first_correction())


def _block_pairs(file: Path, end: str, columns: Sequence[int]) -> Iterator[Pair]:
    block: list[str] = []
    number = 0
    for number, line in enumerate(read_lines(file), start=1):
        line = line.strip("\ufeff \t")
        if line and line != end:
            block.append(line)
        elif line:
            yield _columns_of(block, columns, f"{file}, the block that ends at line {number}")
            block = []
    if block:
        yield _columns_of(block, columns, f"{file}, the block that ends at line {number}")


def _columns_of(block: list[str], columns: Sequence[int], place: str) -> Pair:
    if len(block) <= max(columns):
        raise AggdecError(f"{place}: has {len(block)} lines where {max(columns) + 1} are expected")
    source, target = (block[column] for column in columns)
    return source, target


def _line_pairs(source: Path, target: Path) -> Iterator[Pair]:
    sides = [read_lines(source), read_lines(target)]
    number = 0
    for number, first in enumerate(sides[0], start=1):
        second = next(sides[1], None)
        if second is None:
            raise AggdecError(f"{target} ends after {number - 1} lines, {source} does not: they must have as many")
        yield first, second
    if next(sides[1], None) is not None:
        raise AggdecError(f"{source} ends after {number} lines, {target} does not: they must have as many")


def _changes(item: dict[str, Any]) -> Callable[[str], str]:
    steps: list[Callable[[str], str]] = []
    if "without" in item:
        steps.append(lambda line: line.replace(item["without"], " "))
    if item.get("treebank"):
        steps.append(ptb.detokenise)
    if "tokens" in item:
        if item["tokens"] not in _TOKENS:
            raise AggdecError(f"parallel: tokens: {item['tokens']} is unknown; there are {', '.join(_TOKENS)}")
        steps.append(_TOKENS[item["tokens"]])
    return lambda line: " ".join(_all(steps, line).split())


def _all(steps: Iterable[Callable[[str], str]], line: str) -> str:
    for step in steps:
        line = step(line)
    return line
