"""Reading the sentence pairs that a `prepare.yaml` names under `parallel`.

An entry, or each entry of a list, has one of these forms:

    {source: FILE, target: FILE}            two files with one sentence in a line
    {file: FILE, columns: [0, 1]}           a table with tabs between its columns
    {file: FILE, blocks: "*****"}           one sentence in a line, and that text behind each group of sentences
    {m2: FILE}                              gold edits: the target is the first annotator's correction
    {corrections: FILE}                     a table of number, sentence, corrections: all corrections are references,
                                            and the first is the target
    {made_by: FOLDER, settings: {...}}      no file: the function `pairs(**settings)` of a Python package beside
                                            prepare.yaml makes the pairs

`columns` also says which lines of a group are source and target. Then a pair can be changed:

    without: TEXT        this text is removed from both sides
    treebank: true       Penn Treebank tokens become running text
    tokens: words        running text becomes words and marks, for languages that Moses' rules do not know
    tokens: characters   each character becomes a token, for Chinese
    first: NUMBER        only so many pairs are read
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from fairseq_aggdec.data import ptb
from fairseq_aggdec.data.entry_checks import check_columns, check_range
from fairseq_aggdec.data.m2_file import read_m2
from fairseq_aggdec.data.references import CorrectedSentence, read_corrections, reference_columns
from fairseq_aggdec.data.sentence_pairs import Pair
from fairseq_aggdec.data.text_files import given_file, read_lines
from fairseq_aggdec.data.words import characters, split_words
from fairseq_aggdec.errors import AggdecError

_TOKENS: dict[str, Callable[[str], str]] = {"words": split_words, "characters": characters}


@dataclass(frozen=True)
class PairFile:
    """An entry of `parallel`; see the module's docstring."""

    source: str | None = None
    target: str | None = None
    references: list[str] = field(default_factory=list)
    """files of a test set's references, where the target is not the only one"""
    file: str | None = None
    columns: list[int] = field(default_factory=lambda: [0, 1])
    blocks: str | None = None
    m2: str | None = None
    corrections: str | None = None
    made_by: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    without: str | None = None
    treebank: bool = False
    tokens: str | None = None
    first: int | None = None

    def __post_init__(self) -> None:
        forms = (self.source and self.target, self.file, self.m2, self.corrections, self.made_by)
        if sum(map(bool, forms)) != 1:
            raise AggdecError("one of source and target, file, m2, corrections, made_by says where the pairs are")
        if self.tokens not in (None, *_TOKENS):
            raise AggdecError(f"tokens: {self.tokens} is unknown; there are {', '.join(_TOKENS)}")
        check_columns(self.columns)
        check_range(vars(self), ["first"], 1)

    def changed(self, line: str) -> str:
        """A sentence, changed as the entry says, with single spaces."""
        if self.without:
            line = line.replace(self.without, " ")
        if self.treebank:
            line = ptb.detokenise(line)
        if self.tokens:
            line = _TOKENS[self.tokens](line)
        return " ".join(line.split())


def read_pairs(entries: Iterable[PairFile], data: Path, beside: Path) -> Iterator[Pair]:
    """Yields the pairs of the entries, with single spaces.

    Args:
        entries: a split's entries in `parallel`.
        data: the folder of the data sets.
        beside: the folder of the `prepare.yaml`.

    Raises:
        AggdecError: a file is missing, damaged, or of another format.
    """
    for entry in entries:
        for source, target in islice(_raw_pairs(entry, data, beside), entry.first):
            yield entry.changed(source), entry.changed(target)


def read_references(entries: Sequence[PairFile], data: Path) -> Sequence[Iterable[str]]:
    """The sentences of each reference of a split; no references where there is only the target, or several entries.

    Raises:
        AggdecError: a file is missing, damaged, or of another format.
    """
    if len(entries) != 1:
        return []
    (entry,) = entries
    if entry.corrections:
        corrected = islice(_corrected(data / entry.corrections), entry.first)
        return reference_columns([[entry.changed(text) for text in sentence.corrections] for sentence in corrected])
    return [map(entry.changed, islice(read_lines(data / file), entry.first)) for file in entry.references]


def _corrected(file: Path) -> Iterator[CorrectedSentence]:
    return read_corrections(read_lines(file), str(file))


def _raw_pairs(entry: PairFile, data: Path, beside: Path) -> Iterator[Pair]:
    if entry.source and entry.target:
        return _line_pairs(data / entry.source, data / entry.target)
    if entry.corrections:
        return ((sentence.source, sentence.corrections[0]) for sentence in _corrected(data / entry.corrections))
    if entry.m2:
        return (sentence.pair() for sentence in read_m2(given_file(data / entry.m2)))
    if entry.file and entry.blocks:
        return _block_pairs(data / entry.file, entry.blocks, entry.columns)
    if entry.file:
        file = data / entry.file
        return zip(*(read_lines(file, column) for column in entry.columns), strict=True)
    return _made_pairs(beside / (entry.made_by or ""), entry.settings)


def _made_pairs(folder: Path, settings: Mapping[str, Any]) -> Iterator[Pair]:
    """The pairs that the package in a folder makes by its function `pairs`."""
    file = folder / "__init__.py"
    if not file.is_file():
        raise AggdecError(f"{file} does not exist: made_by names a folder beside prepare.yaml")
    name = str(folder.absolute()).replace(".", "_")  # unique: another experiment's folder may have the same name
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(folder)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)  # its parts import each other by this name
    spec.loader.exec_module(module)
    pairs: Iterator[Pair] = module.pairs(**settings)
    return pairs


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
    for before, (first, second) in enumerate(zip_longest(read_lines(source), read_lines(target))):
        if first is None or second is None:
            shorter, longer = (source, target) if first is None else (target, source)
            raise AggdecError(f"{shorter} ends after {before} lines, {longer} does not: they must have as many")
        yield first, second
