"""The stages from raw text to fairseq's binary data, as described by an experiment's `prepare.yaml`.

Every stage's files have their names only when they are complete, so that a run that was stopped goes on where it was,
and a second run does nothing. Delete the work folder, or a stage's, to build with other settings.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from fairseq_aggdec.data import subwords
from fairseq_aggdec.data.text_files import given_file, read_lines, write_lines
from fairseq_aggdec.data.text_stages import TextStages, read_config
from fairseq_aggdec.demo.tasks import TASKS, DemoTask
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import PARTIAL, alone_at, written_whole


def _run(command: list[str], work: Path) -> None:
    # the child keeps the lock on the work folder, and writes on if this process is killed
    if subprocess.run(command, cwd=work, close_fds=False).returncode != 0:
        raise AggdecError(f"{command[2]} failed; its own message is above")


@dataclass
class Preparation(TextStages):
    """One experiment's data preparation: text, then tokens, subwords and binary data."""

    @classmethod
    def from_file(cls, path: Path, data: Path, work: Path, workers: int = 1) -> Preparation:
        """Reads `prepare.yaml`."""
        return cls(read_config(path), data, work, workers)

    def tokenizer_language(self, side: str) -> str | None:
        """The language whose Moses rules split a side's running text; None where the text is tokenised already."""
        language = self.config.get("tokenizer_language")
        return language[side] if isinstance(language, dict) else language

    @property
    def _shipped(self) -> DemoTask | None:
        """The shipped model whose subwords are taken, so that a training can start from it: `bpe: {shipped: gec}`."""
        name = (self.config.get("bpe") or {}).get("shipped")
        if name is None:
            return None
        if name not in TASKS:
            raise AggdecError(f"bpe: shipped: no model {name!r} is shipped; there are {', '.join(TASKS)}")
        return TASKS[name]

    def run(self) -> None:
        """Runs all stages that are not complete yet.

        Raises:
            AggdecError: a file is missing or damaged, or another process is preparing the same folder.
        """
        self.work.mkdir(parents=True, exist_ok=True)
        with alone_at(self.work):
            self.write_text()
            self.tokenise()
            self.encode()
            self.binarise()

    def tokenise(self) -> None:
        """Writes Moses tokens of every file in `text/` to `tok/`; text that is tokenised already is copied.

        `tokenizer: as_written` gives the tokens that fairseq-interactive has under --tokenizer as_written.
        """
        name = self.config.get("tokenizer", "moses")
        if name not in ("moses", "as_written"):
            raise AggdecError(f"tokenizer: {name}: must be moses or as_written")
        make = subwords.as_written if name == "as_written" else subwords.moses
        for text in sorted((self.work / "text").iterdir()):
            output = self.work / "tok" / text.name
            if output.exists() or text.name.endswith(PARTIAL):
                continue
            lines: Iterable[str] = read_lines(text)
            language = self.tokenizer_language(text.suffix[1:])
            if language:
                label = f"tokenise {text.name}"
                lines = subwords.encode_lines(lines, make, language, workers=self.workers, label=label)
            write_lines(output, lines)

    def encode(self) -> None:
        """Writes subwords of every split to `bpe/`, by codes learned on the training text or by GPT-2's.

        Sources are cut at `max_source_tokens`; training pairs that are longer than `max_tokens` are dropped.
        """
        encoder = self._subword_encoder()
        for name in self.splits:
            outputs = [self.work / "bpe" / f"{name}.{side}" for side in self.languages]
            if all(output.exists() for output in outputs):
                continue
            encoded = []
            for side in self.languages:
                lines = read_lines(self.work / "tok" / f"{name}.{side}")
                if encoder is not None:
                    label = f"subwords {name}.{side}"
                    lines = subwords.encode_lines(lines, *encoder, workers=self.workers, label=label)
                encoded.append(list(lines))
            longest_source = self.config.get("max_source_tokens")
            if longest_source:  # a summary is told from the beginning
                encoded[0] = [" ".join(line.split()[:longest_source]) for line in encoded[0]]
            pairs = list(zip(*encoded, strict=True))
            if name in self.training_sets:  # elsewhere line numbers must stay those of the text
                longest = self.config["max_tokens"]
                pairs = [pair for pair in pairs if all(0 < len(side.split()) <= longest for side in pair)]
            self._write_pairs(name, pairs, "bpe")

    def _subword_encoder(self) -> tuple[Any, ...] | None:
        """What `encode_lines` is given; None for tokens as they are."""
        settings = self.config.get("bpe")
        if settings is None:
            return None
        if "gpt2" in settings:
            files = [given_file(self.data / settings["gpt2"][name]) for name in ("encoder_json", "vocab_bpe")]
            return (subwords.gpt2, *files)
        codes = self.work / "codes"
        if self._shipped is not None and not codes.exists():
            with written_whole(codes) as partial:
                shutil.copy(self._shipped.folder / "bpecodes", partial)
        if not codes.exists():
            # Synthetic errors must not shape the vocabulary, so with a clean side only that side is learned from.
            sides = [self.languages[1]] if "clean_text" in self.config else list(self.languages)
            text = chain.from_iterable(read_lines(self.work / "tok" / f"train.{side}") for side in sides)
            with written_whole(codes) as partial:
                subwords.learn_codes(text, partial, settings["symbols"], settings["min_frequency"])
        return subwords.subword_nmt, codes

    def binarise(self) -> None:
        """Runs `fairseq-preprocess` with one dictionary for both sides; the result is `data-bin/`.

        Tokens that training pairs have less often than `min_occurrences` are unknown: the model sees the unknown token
        on both sides, and learns to copy it.
        """
        output = self.work / "data-bin"
        if output.exists():
            return
        source, target = self.languages
        partial = self.work / "data-bin.partial"
        shutil.rmtree(partial, ignore_errors=True)
        # from within the work folder: its own name may begin with a dash or hold a comma
        bpe, destination = Path("bpe"), Path(partial.name)
        command = [sys.executable, "-m", "fairseq_cli.preprocess", "--source-lang", source, "--target-lang", target]
        command += ["--joined-dictionary", "--workers", str(self.workers)]
        if self._shipped is not None:
            command += ["--srcdict", str(self._shipped.folder / f"dict.{self._shipped.source_language}.txt")]
        elif "dictionary" in self.config:
            command += ["--srcdict", str(given_file(self.data / self.config["dictionary"]).absolute())]
        elif "min_occurrences" in self.config:
            command += ["--thresholdsrc", str(self.config["min_occurrences"])]  # both sides', as they are joined
        tests = ",".join(str(bpe / name) for name in self.splits[len(self.training_sets) + 1 :])
        files = ["--trainpref", str(bpe / "train"), "--validpref", str(bpe / "valid"), "--testpref", tests]
        _run([*command, *files, "--destdir", str(destination)], self.work)
        for name in self.training_sets[1:]:  # fairseq-preprocess takes one training set at a time
            extra = partial / name
            files = ["--trainpref", str(bpe / name), "--srcdict", str(destination / f"dict.{source}.txt")]
            _run([*command, *files, "--destdir", str(destination / name)], self.work)
            for file in extra.glob("train.*"):
                file.rename(partial / file.name.replace("train.", f"{name}.", 1))
            shutil.rmtree(extra)
        language = self.tokenizer_language(source)
        if language and not (partial / f"dict.{language}.txt").exists():
            # fairseq-interactive hands --source-lang to the tokeniser, whose rules depend on the language, so the
            # dictionary must also be found under the language's own name: `-s en -t en`.
            shutil.copy(partial / f"dict.{source}.txt", partial / f"dict.{language}.txt")
        if (self.work / "codes").exists():
            shutil.copy(self.work / "codes", partial / "codes")
        for name, file in (self.config.get("bpe") or {}).get("gpt2", {}).items():  # to turn numbers into words again
            shutil.copy(
                given_file(self.data / file), partial / {"encoder_json": "encoder.json", "vocab_bpe": "vocab.bpe"}[name]
            )
        partial.rename(output)
