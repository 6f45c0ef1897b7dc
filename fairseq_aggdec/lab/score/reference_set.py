"""Reads a test set with its references, and outputs, from files."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.lab.score.generate_file import join_subwords, read_generate_file
from fairseq_aggdec.lab.score.m2_file import M2Sentence, read_m2

T = TypeVar("T")
Lines = list[list[str]]

_HYPOTHESIS = re.compile(r"^H-\d+\t", re.MULTILINE)


@dataclass(frozen=True)
class ReferenceSet:
    """Sources and references of a test set; unknown fields are empty."""

    sources: Lines
    """tokens of each source"""
    references: Sequence[Lines]
    """tokens of each sentence, one list for each reference"""
    text: Sequence[Sequence[str]] = ()
    """running text of the references, before tokenisation"""
    language: str | None = None
    """language of the references, for detokenisation; None if the outputs are running text"""
    m2: Sequence[M2Sentence] = ()
    """gold edits of each sentence"""

    @property
    def size(self) -> int:
        """How many sentences there are; 0 if all fields are empty."""
        parts = (self.sources, *self.references, *self.text, self.m2)
        return max(map(len, parts))

    def only(self, sentences: Sequence[int]) -> "ReferenceSet":
        """Return a set with these sentences only."""

        def chosen(part: Sequence[T]) -> list[T]:
            return [part[index] for index in sentences] if part else []

        return ReferenceSet(
            chosen(self.sources),
            [*map(chosen, self.references)],
            [*map(chosen, self.text)],
            self.language,
            chosen(self.m2),
        )

    def in_characters(self) -> "ReferenceSet":
        """Return the set with each character as a token, for Chinese, and without running text."""
        return replace(
            self,
            sources=characters(self.sources),
            references=[characters(part) for part in self.references],
            text=(),
            m2=[sentence.in_characters() for sentence in self.m2],
        )


def characters(lines: Lines) -> Lines:
    """The lines with each character as a token."""
    return [list("".join(line)) for line in lines]


def _nonempty(path: Path) -> list[str]:
    lines = read_text_lines(path)
    if not lines:
        raise AggdecError(f"{path}: is empty")
    return lines


def read_outputs(
    path: Path, size: int, join: Callable[[str], str] = join_subwords
) -> dict[int, list[str]]:
    """Return the tokens that a model wrote, by sentence id.

    Args:
        path: a file with one sentence a line, or the output of fairseq-generate (its first hypotheses).
        size: sentences in the test set; fairseq-generate may have left out some that are too long.
        join: joins the subwords in the output of fairseq-generate; by default those of subword-nmt.

    Raises:
        AggdecError: the file is empty or holds more or fewer sentences.
    """
    lines = _nonempty(path)
    if any(_HYPOTHESIS.search(line) for line in lines):
        generated = read_generate_file(path)
        if max(generated) >= size:
            raise AggdecError(
                f"{path}: has a sentence {max(generated)}, but the test set has {size}, counted from 0"
            )
        return {
            sentence: join(str(found.hypothesis)).split()
            for sentence, found in generated.items()
        }
    if len(lines) != size:
        raise AggdecError(
            f"{path}: has {len(lines)} lines, but the test set has {size}"
        )
    return {index: line.split() for index, line in enumerate(lines)}


def read_reference_set(
    sources: Path | None = None,
    references: Sequence[Path] = (),
    text: Sequence[Path] = (),
    language: str | None = None,
    m2: Path | None = None,
) -> ReferenceSet:
    """Read a test set. Without `sources`, the sentences of the M2 file are the sources.

    Raises:
        AggdecError: nothing is given, a file is empty or has more or fewer lines, or the M2 file has other sentences.
    """
    gold: Sequence[M2Sentence] = read_m2(m2) if m2 else ()
    paths = filter(None, (sources, *references, *text))
    lines = {path: _nonempty(path) for path in paths}
    sizes = {path: len(part) for path, part in lines.items()}
    if m2:
        sizes = {m2: len(gold), **sizes}
    if not sizes:
        raise AggdecError(
            "nothing to compare with: give --references, --text-references, --m2 or --sources"
        )
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"{path} has {size}" for path, size in sizes.items())
        raise AggdecError(
            f"not as many sentences in all files: {counts}; they must belong together line by line"
        )

    def tokens(path: Path) -> Lines:
        return [line.split() for line in lines[path]]

    source_tokens = [list(sentence.tokens) for sentence in gold]
    if sources:
        source_tokens = tokens(sources)
    if sources and m2:
        check_sources(source_tokens, gold, sources, m2)
    return ReferenceSet(
        source_tokens,
        [*map(tokens, references)],
        [lines[path] for path in text],
        language,
        gold,
    )


def check_sources(
    sources: Lines, gold: Sequence[M2Sentence], source_file: Path, m2_file: Path
) -> None:
    """Check that an M2 file annotates these sentences.

    Raises:
        AggdecError: it has other sentences; the message names the first.
    """
    for number, (line, sentence) in enumerate(zip(sources, gold, strict=True), start=1):
        if line != list(sentence.tokens):
            raise AggdecError(
                f"sentence {number} of {m2_file} is {' '.join(sentence.tokens)[:60]!r}, but line {number} of "
                f"{source_file} is {' '.join(line)[:60]!r}: sources and outputs must have the M2 file's tokens"
            )
