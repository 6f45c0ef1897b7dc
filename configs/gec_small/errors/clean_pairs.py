"""Clean sentences of several texts, and pairs of erroneous and clean ones made of them."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from random import Random

from experiments import ptb
from experiments.chance import hold_out, line_seed
from experiments.steps import Steps
from experiments.text_files import read_json_lines, read_lines, strings, write_lines
from tqdm import tqdm

from . import clean_text
from .corruption_files import FileCorruption, corrupt_file
from .unusual import with_unusual

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CleanText:
    """A file of clean sentences, one in a line."""

    file: str
    """below the folder of the data sets"""
    column: int | None = None
    """the column, if the file is a table with tabs; None: the whole line"""
    json_field: str | None = None
    """the field with the sentences, if each line is a JSON object; None: each is a sentence"""
    tokenised: bool = False
    """whether marks stand apart, as in Penn Treebank tokens; they are joined with their words"""
    repeat: int = 1
    """how often each sentence is in the training text"""
    running_text: bool = False
    """whether neighbouring lines belong together, so that they may be joined"""
    modern_only: bool = False
    """whether to leave out sentences that do not read modern, by the words of the files before"""
    max_unknown_words: int = 0
    """the most unknown words in a sentence of a `modern_only` file"""

    def sentences(self, data: Path) -> Iterator[str]:
        """Yields the sentences, not normalised yet."""
        file = data / self.file
        sentences: Iterator[str] = tqdm(
            read_lines(file, self.column), desc=self.file, unit=" lines"
        )
        if self.json_field is not None:
            records = read_json_lines(sentences, str(file), self.json_field)
            sentences = chain.from_iterable(
                strings(record[self.json_field], where) for where, record in records
            )
        return map(ptb.detokenise, sentences) if self.tokenised else sentences


def write_clean(
    texts: Sequence[CleanText],
    sizes: dict[str, int],
    data: Path,
    folder: Path,
    joined: Mapping[str, int] | None = None,
    unusual_share: float = 0,
) -> None:
    """Writes the clean sentences of each split: `folder/{train,train1,valid,test}`.

    Args:
        texts: the clean texts. A sentence counts for the first of them that has it.
        sizes: {held-out set: number of sentences}.
        data: the folder of the data sets.
        folder: the output.
        joined: arguments of `join_neighbours` for `train1`; None: there is no `train1`.
        unusual_share: share of the training sentences that get unusual characters, see `unusual`.
    """
    # the sentences that are kept, each once
    seen: set[str] = set()
    known_words: set[str] = set()
    kept: list[tuple[str, int]] = []
    running: list[str] = []
    for item in texts:
        before = len(kept)
        for sentence in clean_text.clean_sentences(item.sentences(data)):
            if sentence in seen:
                continue
            seen.add(sentence)
            if not item.modern_only:
                known_words |= clean_text.lower_case_words(sentence)
            elif not clean_text.is_modern(
                sentence, known_words, item.max_unknown_words
            ):
                continue
            kept.append((sentence, item.repeat))
            if item.running_text:
                running.append(sentence)
        logger.info("%s: %d sentences kept", item.file, len(kept) - before)

    # held-out sets
    held_out = hold_out((sentence for sentence, _ in kept), sizes)
    reserved = set(chain.from_iterable(held_out.values()))
    for name, sentences in held_out.items():
        write_lines(folder / name, sentences)

    # training sets: long lines, and sentences as often as their text says
    if joined:
        in_order = [sentence for sentence in running if sentence not in reserved]
        write_lines(
            folder / "train1",
            _with_unusual(join_neighbours(in_order, **joined), unusual_share),
        )
    rounds = max(repeat for _, repeat in kept)
    train = (
        sentence
        for turn in range(rounds)
        for sentence, repeat in kept
        if turn < repeat and sentence not in reserved
    )
    write_lines(folder / "train", _with_unusual(train, unusual_share))


def _with_unusual(sentences: Iterable[str], share: float) -> Iterator[str]:
    for number, sentence in enumerate(sentences, start=1):
        rng = Random(line_seed(1, number))
        yield with_unusual(sentence, rng) if rng.random() < share else sentence


def write_erroneous(steps: Steps, folder: Path, errors: FileCorruption) -> None:
    """Writes (erroneous, clean) pairs of each split in `work/clean` to `folder`; each has a seed of its own."""
    for number, name in enumerate(("train", "valid", "test", "train1")):
        if (clean := steps.work / "clean" / name).exists():
            source, target = (
                folder / f"{name}.{side}" for side in steps.experiment.sides
            )
            made = corrupt_file(
                clean,
                source,
                target,
                replace(errors, seed=errors.seed + number),
                steps.workers,
            )
            logger.info("%s: %d pairs, %d errors", name, made.pairs, made.edits.total())


def join_neighbours(
    sentences: Sequence[str], lines: int, min_words: int, max_words: int
) -> Iterator[str]:
    """Joins neighbouring sentences of running text to long lines.

    Clean sentences are short, users paste several sentences at once, and learners forget full stops: after the
    positions that it was trained on, a model fails.

    Args:
        sentences: the sentences in the order of the text.
        lines: number of joined lines; their first sentences are spread evenly over the text.
        min_words: sentences are joined until a line has this many words; a shorter line at the end is left out.
        max_words: the most words of a line; a longer one is left out.
    """
    step = max(1, len(sentences) // max(1, lines))
    for start in range(0, len(sentences), step):
        line: list[str] = []
        words = 0
        for sentence in sentences[start : start + min_words]:
            line.append(sentence)
            words += len(sentence.split())
            if words >= min_words:
                break
        if min_words <= words <= max_words:
            yield " ".join(line)
