"""The stages from raw text to fairseq's binary data, as an experiment's `prepare.yaml` describes them.

A stage's files have their names only when they are complete: a run that was stopped goes on where it was, and a second
run does nothing. To build with other settings, delete the work folder, or the folder of a stage.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from fairseq_aggdec.data import subwords
from fairseq_aggdec.data.prepare_config import PrepareConfig
from fairseq_aggdec.data.text_files import given_file, read_lines, write_lines
from fairseq_aggdec.data.text_stages import write_pairs, write_text
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import PARTIAL, alone_at, folder_written_whole, written_whole

_SHIPPED = Path(__file__).parents[1] / "demo"  # a folder for each model


def prepare(config: PrepareConfig, data: Path, work: Path, workers: int = 1) -> None:
    """Runs all stages that are not complete yet.

    Args:
        config: the content of the `prepare.yaml`.
        data: the folder of the data sets.
        work: the folder for all outputs of the experiment; the binary data are written to `work/data-bin`.
        workers: number of processes.

    Raises:
        AggdecError: a file is missing or damaged, or another process is preparing the same folder.
    """
    if config.bpe and config.bpe.shipped:
        _shipped(config.bpe.shipped)  # it is needed late, and a wrong name is refused at once
    work.mkdir(parents=True, exist_ok=True)
    with alone_at(work):
        write_text(config, data, work, workers)
        tokenise(config, work, workers)
        encode(config, data, work, workers)
        binarise(config, data, work, workers)


def tokenise(config: PrepareConfig, work: Path, workers: int = 1) -> None:
    """Tokenises every file in `text/` to `tok/`; text that is already tokenised is copied."""
    for text in sorted((work / "text").iterdir()):
        output = work / "tok" / text.name
        if output.exists() or text.name.endswith(PARTIAL):
            continue
        lines: Iterable[str] = read_lines(text)
        if language := config.language_of(text.suffix[1:]):
            make, label = subwords.tokenizer, f"tokenise {text.name}"
            lines = subwords.encode_lines(lines, make, config.tokenizer, language, workers=workers, label=label)
        write_lines(output, lines)


def encode(config: PrepareConfig, data: Path, work: Path, workers: int = 1) -> None:
    """Splits every split in `tok/` into subwords in `bpe/`: of the training text, a shipped model, or GPT-2.

    Sources are cut at `max_source_tokens`; training pairs longer than `max_tokens` are left out.
    """
    make_encoder = _subwords(config, data, work)
    for name in config.splits:
        if all((work / "bpe" / f"{name}.{side}").exists() for side in config.sides):
            continue
        encoded = []
        for side in config.sides:
            lines = read_lines(work / "tok" / f"{name}.{side}")
            if make_encoder:
                label = f"subwords {name}.{side}"
                lines = subwords.encode_lines(lines, make_encoder, workers=workers, label=label)
            encoded.append(list(lines))
        if config.max_source_tokens:  # a summary depends on the beginning
            encoded[0] = [" ".join(line.split()[: config.max_source_tokens]) for line in encoded[0]]
        pairs = list(zip(*encoded, strict=True))
        if name in config.training_sets:  # in other splits line numbers must stay
            longest = config.max_tokens or sys.maxsize
            pairs = [pair for pair in pairs if all(0 < len(side.split()) <= longest for side in pair)]
        write_pairs(config, work / "bpe", name, pairs)


def _subwords(config: PrepareConfig, data: Path, work: Path) -> Callable[[], Any] | None:
    """A function that makes the encoder; None for no subwords. Learned or shipped codes are in `work/codes`."""
    settings = config.bpe
    if settings is None:
        return None
    if settings.gpt2:
        return partial(subwords.gpt2, *(given_file(data / file) for file in vars(settings.gpt2).values()))
    codes = work / "codes"
    if not codes.exists():
        with written_whole(codes) as unfinished:
            if settings.shipped:
                shutil.copy(_shipped(settings.shipped) / "bpecodes", unfinished)
            else:
                # synthetic errors must not shape the vocabulary: beside a clean side it is not learned from the other
                sides = config.sides[1:] if config.clean_text else config.sides
                text = chain.from_iterable(read_lines(work / "tok" / f"train.{side}") for side in sides)
                subwords.learn_codes(text, unfinished, settings.symbols, settings.min_frequency)
    return partial(subwords.subword_nmt, codes)


def _shipped(name: str) -> Path:
    """The folder of a shipped model."""
    known = sorted(path.parent.name for path in _SHIPPED.glob("*/bpecodes"))
    if name not in known:
        raise AggdecError(f"bpe: shipped: no model {name!r} is shipped; there are {', '.join(known)}")
    return _SHIPPED / name


def binarise(config: PrepareConfig, data: Path, work: Path, workers: int = 1) -> None:
    """Runs `fairseq-preprocess`, with one dictionary for both sides, to `data-bin/`."""
    output = work / "data-bin"
    if not output.exists():
        with folder_written_whole(output) as unfinished:
            _preprocess(config, data, work, unfinished, workers)
            _add_what_decoding_reads(config, data, work, unfinished)


def _preprocess(config: PrepareConfig, data: Path, work: Path, unfinished: Path, workers: int) -> None:
    source, target = config.sides
    # from within the work folder: its own name may begin with a dash or hold a comma
    bpe, destination = Path("bpe"), Path(unfinished.name)
    command = [sys.executable, "-m", "fairseq_cli.preprocess", "--source-lang", source, "--target-lang", target]
    command += ["--joined-dictionary", "--workers", str(workers)]
    if config.bpe and config.bpe.shipped:
        command += ["--srcdict", str(min(_shipped(config.bpe.shipped).glob("dict.*.txt")))]  # all are equal
    elif config.dictionary:
        command += ["--srcdict", str(given_file(data / config.dictionary).absolute())]
    elif config.min_occurrences:
        command += ["--thresholdsrc", str(config.min_occurrences)]  # it holds for both sides, as they are joined
    tests = ",".join(str(bpe / name) for name in config.splits[len(config.training_sets) + 1 :])
    files = ["--trainpref", str(bpe / "train"), "--validpref", str(bpe / "valid"), "--testpref", tests]
    _run([*command, *files, "--destdir", str(destination)], work)
    for name in config.training_sets[1:]:  # fairseq-preprocess takes one training set at a time
        extra = unfinished / name
        files = ["--trainpref", str(bpe / name), "--srcdict", str(destination / f"dict.{source}.txt")]
        _run([*command, *files, "--destdir", str(destination / name)], work)
        for file in extra.glob("train.*"):
            file.rename(unfinished / file.name.replace("train.", f"{name}.", 1))
        shutil.rmtree(extra)


def _add_what_decoding_reads(config: PrepareConfig, data: Path, work: Path, unfinished: Path) -> None:
    source, _ = config.sides
    language = config.language_of(source)
    if language and not (unfinished / f"dict.{language}.txt").exists():
        # fairseq-interactive passes --source-lang to the tokeniser, whose rules depend on the language: so there must
        # be a dictionary with the language's own name, for `-s en -t en`
        shutil.copy(unfinished / f"dict.{source}.txt", unfinished / f"dict.{language}.txt")
    if (work / "codes").exists():
        shutil.copy(work / "codes", unfinished / "codes")
    if config.bpe and config.bpe.gpt2:  # needed to decode outputs
        shutil.copy(given_file(data / config.bpe.gpt2.encoder_json), unfinished / "encoder.json")
        shutil.copy(given_file(data / config.bpe.gpt2.vocab_bpe), unfinished / "vocab.bpe")


def _run(command: list[str], work: Path) -> None:
    # the child inherits the lock on the work folder, since it would go on if this process were killed
    if subprocess.run(command, cwd=work, close_fds=False).returncode != 0:
        raise AggdecError(f"{command[2]} failed; its own message is above")
