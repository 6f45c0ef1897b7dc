"""The steps from raw text to fairseq's binary data; the function `prepare` of an experiment's `prepare.py` runs them.

    text/SPLIT.SIDE    running text, one sentence in a line
    tok/SPLIT.SIDE     its tokens
    bpe/SPLIT.SIDE     its subwords
    data-bin           fairseq's binary data

A file or folder has its name only when it is whole, and is not made again: a run that was stopped is continued. To
build with other settings, delete the work folder, or the folder of a step.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import fairseq_aggdec
from experiments import subwords
from experiments.experiment import Experiment, read_experiment
from experiments.sentence_pairs import Pair
from experiments.text_files import given_file, read_lines, write_lines
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import PARTIAL, alone_at, folder_written_whole, written_whole

_SHIPPED = Path(fairseq_aggdec.__path__[0]) / "demo"  # a folder for each model


def prepare(file: Path, data: Path, work: Path, workers: int = 1) -> None:
    """Run the function `prepare` of an experiment.

    Args:
        file: the `prepare.py`.
        data: the folder of the data sets.
        work: the folder for all outputs of the experiment; the binary data are written to `work/data-bin`.
        workers: number of processes.

    Raises:
        AggdecError: a file is missing or damaged, or another process prepares the same folder.
    """
    experiment, module = read_experiment(file)
    if not callable(getattr(module, "prepare", None)):
        raise AggdecError(
            f"{file}: has no function prepare(steps); compare with the files in configs/"
        )
    work.mkdir(parents=True, exist_ok=True)
    with alone_at(work):
        module.prepare(Steps(experiment, data, work, workers))


@dataclass(frozen=True)
class Steps:
    """The steps of an experiment, and the folders that they read and write."""

    experiment: Experiment
    data: Path
    """the folder of the data sets"""
    work: Path
    """the folder for the experiment's outputs"""
    workers: int = 1
    """number of processes"""

    def once(self, name: str, make: Callable[[Steps, Path], None]) -> None:
        """Call `make(self, folder)`, which fills the folder `work/name`, unless that folder exists."""
        if not (folder := self.work / name).exists():
            with folder_written_whole(folder) as unfinished:
                make(self, unfinished)

    def write_pairs(self, folder: Path, name: str, pairs: Iterable[Pair]) -> None:
        """Write a split to `folder/NAME.SIDE`, each pair as it comes: 300 million fit no memory.

        Raises:
            AggdecError: there are no pairs.
        """
        written = False
        with ExitStack() as both:
            parts = [
                both.enter_context(written_whole(folder / f"{name}.{side}"))
                for side in self.experiment.sides
            ]
            files = [
                both.enter_context(part.open("w", encoding="utf-8", newline="\n"))
                for part in parts
            ]
            for pair in pairs:
                written = True
                for file, line in zip(files, pair, strict=True):
                    file.write(line + "\n")
            if not written:
                raise AggdecError(
                    f"{name}: the files of the data sets hold no pairs for it"
                )

    def write_test_set(
        self,
        folder: Path,
        name: str,
        source: str,
        references: Sequence[str],
        change: Callable[[str], str] = str,
    ) -> None:
        """Copy a test set to `folder`; the targets are its first reference, and its sources where it has none.

        Args:
            folder: the folder `text`.
            name: the name of the test set.
            source: the file of its sources, below the folder of the data sets.
            references: the files of its references.
            change: what is done to each line.
        """
        sides = dict(
            zip(self.experiment.sides, (source, [*references, source][0]), strict=True)
        )
        for suffix, file in (
            sides | {f"ref{number}": file for number, file in enumerate(references)}
        ).items():
            write_lines(
                folder / f"{name}.{suffix}", map(change, read_lines(self.data / file))
            )

    def tokenise(self, make_tokenizer: Callable[[str], Any] = subwords.moses) -> None:
        """Tokenise every file in `text/` to `tok/`; text that is already tokenised is copied.

        Args:
            make_tokenizer: makes the tokeniser of a language.
        """
        for text in sorted((self.work / "text").iterdir()):
            output = self.work / "tok" / text.name
            if output.exists() or text.name.endswith(PARTIAL):
                continue
            lines: Iterable[str] = read_lines(text)
            if language := self.experiment.language_of(text.suffix[1:]):
                lines = subwords.encode_lines(
                    lines,
                    make_tokenizer(language),
                    self.workers,
                    f"tokenise {text.name}",
                )
            write_lines(output, lines)

    def learn_subwords(
        self, symbols: int, sides: Sequence[str] = (), min_frequency: int = 2
    ) -> Callable[[], Any]:
        """Learn `codes` from the training text; returns a function that makes the encoder.

        Args:
            symbols: size of the vocabulary, single characters included.
            sides: the sides to learn from; none for both.
            min_frequency: the least frequency of a merge.
        """
        codes = self.work / "codes"
        if not codes.exists():
            files = [
                self.work / "tok" / f"train.{side}"
                for side in sides or self.experiment.sides
            ]
            with written_whole(codes) as unfinished:
                text = chain.from_iterable(map(read_lines, files))
                subwords.learn_codes(text, unfinished, symbols, min_frequency)
        return partial(subwords.subword_nmt, codes)

    def shipped_subwords(self, name: str) -> Callable[[], Any]:
        """Copy the `codes` of a shipped model; returns a function that makes the encoder."""
        codes = self.work / "codes"
        if not codes.exists():
            with written_whole(codes) as unfinished:
                shutil.copy(_SHIPPED / name / "bpecodes", unfinished)
        return partial(subwords.subword_nmt, codes)

    def gpt2_subwords(self, folder: str = "bart") -> Callable[[], Any]:
        """A function that makes GPT-2's encoder out of `encoder.json` and `vocab.bpe` in a folder of the data sets."""
        return partial(
            subwords.gpt2,
            *(given_file(self.data / folder / name) for name in subwords.GPT2_FILES),
        )

    def encode(
        self,
        make_encoder: Callable[[], Any] | None,
        max_tokens: int,
        max_source_tokens: int | None = None,
    ) -> None:
        """Split every split in `tok/` into subwords in `bpe/`.

        Args:
            make_encoder: makes the encoder; None: the tokens stay as they are.
            max_tokens: the most subwords on each side of a training pair; longer and empty ones are left out.
            max_source_tokens: the number of subwords at which a source is cut, in every split.
        """
        for name in self.experiment.splits:
            outputs = [
                self.work / "bpe" / f"{name}.{side}" for side in self.experiment.sides
            ]
            if all(output.exists() for output in outputs):
                continue
            sides = (read_lines(self.work / "tok" / output.name) for output in outputs)
            # source and target in turn
            lines: Iterator[str] = chain.from_iterable(zip(*sides, strict=True))
            if make_encoder:
                lines = subwords.encode_lines(
                    lines, make_encoder(), self.workers, f"subwords {name}"
                )
            pairs: Iterable[Pair] = zip(lines, lines, strict=True)
            if max_source_tokens:  # a summary depends on the beginning
                pairs = (
                    (" ".join(source.split()[:max_source_tokens]), target)
                    for source, target in pairs
                )
            # in other splits line numbers must stay
            if name in self.experiment.training_sets:
                pairs = (
                    pair
                    for pair in pairs
                    if all(0 < len(side.split()) <= max_tokens for side in pair)
                )
            self.write_pairs(self.work / "bpe", name, pairs)

    def binarise(
        self, dictionary: Path | None = None, min_occurrences: int | None = None
    ) -> None:
        """Run `fairseq-preprocess`, with one dictionary for both sides, to `data-bin/`.

        Args:
            dictionary: the file of a given dictionary; None: it is made of the training text.
            min_occurrences: a symbol that is less frequent in the training text becomes the unknown token on both
                sides, which the model learns to copy.
        """
        options: list[str] = []
        if dictionary is not None:
            options = ["--srcdict", str(given_file(dictionary).absolute())]
        elif min_occurrences:
            # it holds for both sides, as they are joined
            options = ["--thresholdsrc", str(min_occurrences)]
        self.once("data-bin", lambda _, unfinished: self._binarise(unfinished, options))

    def _binarise(self, unfinished: Path, options: list[str]) -> None:
        source, _ = self.experiment.sides
        dictionary = unfinished / f"dict.{source}.txt"
        first, *further = self.experiment.training_sets
        tests = self.experiment.splits[len(further) + 2 :]
        self._preprocess(
            unfinished,
            *("--trainpref", f"bpe/{first}"),
            *("--validpref", "bpe/valid"),
            *("--testpref", ",".join(f"bpe/{name}" for name in tests)),
            *options,
        )
        for name in further:  # fairseq-preprocess takes one training set at a time
            alone = unfinished / name
            known = str(dictionary.relative_to(self.work))
            words = ["--trainpref", f"bpe/{name}", "--srcdict", known]
            self._preprocess(alone, *words)
            for file in alone.glob("train.*"):
                file.rename(unfinished / file.name.replace("train.", f"{name}.", 1))
            shutil.rmtree(alone)
        # fairseq-interactive passes --source-lang to the tokeniser, which needs the language: so there must be a
        # dictionary of that name, for `-s en -t en`
        language = self.experiment.language_of(source) or source
        if not (unfinished / f"dict.{language}.txt").exists():
            shutil.copy(dictionary, unfinished / f"dict.{language}.txt")
        if (self.work / "codes").exists():
            shutil.copy(self.work / "codes", unfinished / "codes")
        if self.experiment.gpt2:  # needed to decode outputs
            for name in subwords.GPT2_FILES:
                shutil.copy(given_file(self.data / "bart" / name), unfinished / name)

    def _preprocess(self, destination: Path, *words: str) -> None:
        """Run fairseq-preprocess with these words, from within the work folder.

        Its name may begin with a dash or hold a comma.
        """
        source, target = self.experiment.sides
        command = [
            *(sys.executable, "-m", "fairseq_cli.preprocess"),
            *("--source-lang", source, "--target-lang", target),
            *("--joined-dictionary", "--workers", str(self.workers)),
            *("--destdir", str(destination.relative_to(self.work))),
            *words,
        ]
        # the child inherits the lock on the work folder, since it would live on if this process were killed
        if subprocess.run(command, cwd=self.work, close_fds=False).returncode != 0:
            raise AggdecError(f"{command[2]} failed; its own message is above")


def shipped_dictionary(name: str) -> Path:
    """The dictionary of a shipped model, the same on both sides."""
    return min((_SHIPPED / name).glob("dict.*.txt"))
