"""The stages from raw text to fairseq's binary data, as described by an experiment's `prepare.yaml`.

Every stage's files have their names only when they are complete, so that a run that was stopped goes on where it was,
and a second run does nothing. Delete the work folder, or a stage's, to build with other settings.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from tqdm import tqdm

from fairseq_aggdec.data import clean_text, ptb, sentence_pairs, splits, subwords
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import PARTIAL, decode_text, open_lines, written_whole

logger = logging.getLogger(__name__)


def read_config(path: Path) -> dict[str, Any]:
    """Returns an experiment's `prepare.yaml` as plain dictionaries and lists."""
    return dict(OmegaConf.to_container(OmegaConf.load(path), resolve=True))


def read_lines(path: Path, column: int | None = None) -> Iterator[str]:
    """Yields the lines of a text file, gzipped or not, or one tab-separated column of them.

    Raises:
        AggdecError: the file is absent (the message says which variable points at the data) or damaged.
    """
    if not path.is_file():
        raise AggdecError(f"{path} does not exist: set AGGDEC_DATA to the folder that holds the data sets")
    with open_lines(path) as (lines, _):
        for number, data in enumerate(lines, start=1):
            line = decode_text(data, str(path), number).rstrip("\r\n")
            if column is None:
                yield line
                continue
            fields = line.split("\t")
            if column >= len(fields):
                raise AggdecError(f"{path}, line {number}: has no column {column}, counted from 0: {line[:60]!r}")
            yield fields[column]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes lines to a file that is there only when it is complete."""
    with written_whole(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as output:
        output.writelines(line + "\n" for line in lines)


def _run(command: list[str]) -> None:
    if subprocess.run(command).returncode != 0:
        raise AggdecError(f"{command[2]} failed; its own message is above")


@dataclass
class Preparation:
    """One experiment's data preparation.

    Attributes:
        config: the parsed `prepare.yaml`.
        data: folder of the given data sets.
        work: folder for all outputs of the experiment; the binary data goes to `work/data-bin`.
        workers: number of processes.
    """

    config: dict[str, Any]
    data: Path
    work: Path
    workers: int = 1

    @classmethod
    def from_file(cls, path: Path, data: Path, work: Path, workers: int = 1) -> Preparation:
        """Reads `prepare.yaml`."""
        return cls(read_config(path), data, work, workers)

    @property
    def languages(self) -> tuple[str, str]:
        """Names of the source and target side, the suffixes of all files."""
        return self.config["languages"]["source"], self.config["languages"]["target"]

    @property
    def splits(self) -> list[str]:
        """Names of the splits and test sets, the training sets first."""
        return [*self.training_sets, "valid", "test", *(item["name"] for item in self.config.get("test_sets", []))]

    @property
    def training_sets(self) -> list[str]:
        """`train`, and `train1` if there are joined sentences; fairseq trains on both without being told."""
        return ["train", "train1"] if "joined" in self.config else ["train"]

    def tokenizer_language(self, side: str) -> str | None:
        """The language whose Moses rules split a side's running text; None where the text is tokenised already."""
        language = self.config.get("tokenizer_language")
        return language[side] if isinstance(language, dict) else language

    def run(self) -> None:
        """Runs all stages that are not complete yet."""
        if "parallel" in self.config:
            self.copy_parallel()
        elif "sentence_pairs" in self.config:
            self.split_pairs()
        else:
            self.clean()
            self.corrupt()
            self.copy_test_sets()
        self.tokenise()
        self.encode()
        self.binarise()

    def clean(self) -> None:
        """Writes the clean sentences of each split: `clean/{train,train1,valid,test}`."""
        if all((self.work / "clean" / name).exists() for name in self.training_sets):
            return
        seen: set[str] = set()
        known_words: set[str] = set()
        kept: list[tuple[str, int]] = []
        running: list[str] = []
        for item in self.config["clean_text"]:
            lines = tqdm(read_lines(self.data / item["file"], item.get("column")), desc=item["file"], unit=" lines")
            before = len(kept)
            for sentence in clean_text.clean_sentences(lines):
                if sentence in seen:
                    continue
                seen.add(sentence)
                if not item.get("modern_only"):
                    known_words |= clean_text.lower_case_words(sentence)
                elif not clean_text.is_modern(sentence, known_words, item.get("max_unknown_words", 0)):
                    continue
                kept.append((sentence, item.get("repeat", 1)))
                if item.get("running_text"):
                    running.append(sentence)
            logger.info("%s: %d sentences kept", item["file"], len(kept) - before)
        held_out = splits.hold_out((sentence for sentence, _ in kept), self.config["hold_out"])
        reserved = set(chain.from_iterable(held_out.values()))
        for name, sentences in held_out.items():
            write_lines(self.work / "clean" / name, sentences)
        if "joined" in self.config:
            in_order = [sentence for sentence in running if sentence not in reserved]
            write_lines(self.work / "clean/train1", splits.join_neighbours(in_order, **self.config["joined"]))
        rounds = max(repeat for _, repeat in kept)
        train = (
            sentence
            for turn in range(rounds)
            for sentence, repeat in kept
            if turn < repeat and sentence not in reserved
        )
        if not (self.work / "clean/train").exists():
            write_lines(self.work / "clean/train", train)

    def corrupt(self) -> None:
        """Writes synthetic (erroneous, clean) pairs of each split to `text/`."""
        from fairseq_aggdec.cli import corrupt

        settings = self.config["corrupt"]
        for number, name in enumerate(("train", "valid", "test", *self.training_sets[1:])):
            if all((self.work / "text" / f"{name}.{side}").exists() for side in self.languages):
                continue
            (self.work / "text").mkdir(parents=True, exist_ok=True)
            partial = self.work / "text" / f"{name}.partial"
            arguments = [str(self.work / "clean" / name), str(partial), "--force"]  # a killed run may have left some
            arguments += ["--seed", str(settings["seed"] + number), "--workers", str(self.workers)]
            corrupt.main([*arguments, *map(str, settings.get("options", []))])
            for suffix, side in zip(("src", "tgt"), self.languages, strict=True):
                Path(f"{partial}.{suffix}").rename(self.work / "text" / f"{name}.{side}")

    def copy_test_sets(self) -> None:
        """Writes real test sets as running text to `text/`; the first reference stands in for the target."""
        for item in self.config.get("test_sets", []):
            files = {self.languages[0]: item["source"], self.languages[1]: item["references"][0]}
            files |= {f"ref{number}": reference for number, reference in enumerate(item["references"])}
            for suffix, file in files.items():
                output = self.work / "text" / f"{item['name']}.{suffix}"
                if not output.exists():
                    write_lines(output, map(ptb.detokenise, read_lines(self.data / file)))

    def copy_parallel(self) -> None:
        """Writes given sentence pairs, tokenised already, to `text/`."""
        for name, files in self.config["parallel"].items():
            for side, key in zip(self.languages, ("source", "target"), strict=True):
                output = self.work / "text" / f"{name}.{side}"
                if not output.exists():
                    write_lines(output, (" ".join(line.split()) for line in read_lines(self.data / files[key])))

    def split_pairs(self) -> None:
        """Writes running text of the splits of one parallel corpus to `text/`."""
        settings = self.config["sentence_pairs"]
        outputs = {name: [self.work / "text" / f"{name}.{side}" for side in self.languages] for name in self.splits}
        if all(output.exists() for pair in outputs.values() for output in pair):
            return
        file = self.data / settings["file"]
        columns = [read_lines(file, column) for column in settings["columns"]]
        pairs = list(sentence_pairs.clean_pairs(zip(*columns, strict=True)))
        parts = sentence_pairs.split(
            pairs, self.config["hold_out"], settings.get("long_words", 0), settings.get("long_share", 0.0)
        )
        if "joined_pairs" in settings:
            parts["train"] += sentence_pairs.join_pairs(parts["train"], **settings["joined_pairs"])
        for name, part in parts.items():
            for index, output in enumerate(outputs[name]):
                write_lines(output, (pair[index] for pair in part))

    def tokenise(self) -> None:
        """Writes Moses tokens of every file in `text/` to `tok/`; text that is tokenised already is copied."""
        for text in sorted((self.work / "text").iterdir()):
            output = self.work / "tok" / text.name
            if output.exists() or text.name.endswith(PARTIAL):
                continue
            lines: Iterable[str] = read_lines(text)
            language = self.tokenizer_language(text.suffix[1:])
            if language:
                label = f"tokenise {text.name}"
                lines = subwords.encode_lines(lines, subwords.moses, language, workers=self.workers, label=label)
            write_lines(output, lines)

    def encode(self) -> None:
        """Learns the subword codes on the training text and writes subwords of every split to `bpe/`."""
        codes = self.work / "codes"
        source, target = self.languages
        if not codes.exists():
            # Synthetic errors must not shape the vocabulary, so with a clean side only that side is learned from.
            sides = [target] if "clean_text" in self.config else [source, target]
            text = chain.from_iterable(read_lines(self.work / "tok" / f"train.{side}") for side in sides)
            settings = self.config["bpe"]
            with written_whole(codes) as partial:
                subwords.learn_codes(text, partial, settings["symbols"], settings["min_frequency"])
        for name in self.splits:
            outputs = [self.work / "bpe" / f"{name}.{side}" for side in self.languages]
            if all(output.exists() for output in outputs):
                continue
            encoded = []
            for side in self.languages:
                lines = read_lines(self.work / "tok" / f"{name}.{side}")
                label = f"subwords {name}.{side}"
                encoded.append(
                    list(subwords.encode_lines(lines, subwords.subword_nmt, codes, workers=self.workers, label=label))
                )
            pairs = list(zip(*encoded, strict=True))
            if name in self.training_sets:  # elsewhere line numbers must stay those of the text
                longest = self.config["max_tokens"]
                pairs = [pair for pair in pairs if all(0 < len(side.split()) <= longest for side in pair)]
            for index, output in enumerate(outputs):
                write_lines(output, (pair[index] for pair in pairs))

    def binarise(self) -> None:
        """Runs `fairseq-preprocess` with one dictionary for both sides; the result is `data-bin/`."""
        output = self.work / "data-bin"
        if output.exists():
            return
        source, target = self.languages
        partial = self.work / "data-bin.partial"
        shutil.rmtree(partial, ignore_errors=True)
        bpe = self.work / "bpe"
        command = [sys.executable, "-m", "fairseq_cli.preprocess", "--source-lang", source, "--target-lang", target]
        command += ["--joined-dictionary", "--workers", str(self.workers)]
        tests = ",".join(str(bpe / name) for name in self.splits[len(self.training_sets) + 1 :])
        files = ["--trainpref", str(bpe / "train"), "--validpref", str(bpe / "valid"), "--testpref", tests]
        _run([*command, *files, "--destdir", str(partial)])
        for name in self.training_sets[1:]:  # fairseq-preprocess takes one training set at a time
            extra = partial / name
            files = ["--trainpref", str(bpe / name), "--srcdict", str(partial / f"dict.{source}.txt")]
            _run([*command, *files, "--destdir", str(extra)])
            for file in extra.glob("train.*"):
                file.rename(partial / file.name.replace("train.", f"{name}.", 1))
            shutil.rmtree(extra)
        language = self.tokenizer_language(source)
        if language and not (partial / f"dict.{language}.txt").exists():
            # fairseq-interactive hands --source-lang to the tokeniser, whose rules depend on the language, so the
            # dictionary must also be found under the language's own name: `-s en -t en`.
            shutil.copy(partial / f"dict.{source}.txt", partial / f"dict.{language}.txt")
        shutil.copy(self.work / "codes", partial / "codes")
        partial.rename(output)
