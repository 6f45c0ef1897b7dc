"""Toy data, toy models and the real command line, for tests of the whole chain."""

import gc
import io
import logging
import os
import random
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    chdir,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
)
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import TextIO

import pytest

from fairseq_aggdec.errors import AggdecError

PLUGIN = Path(__file__).resolve().parents[2] / "fairseq_aggdec"
"""the value of --user-dir"""
TINY_TRANSFORMER = (
    "--arch transformer --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 32 --decoder-embed-dim 32 "
    "--encoder-ffn-embed-dim 64 --decoder-ffn-embed-dim 64 --encoder-attention-heads 2 --decoder-attention-heads 2 "
    "--share-all-embeddings --max-source-positions 64 --max-target-positions 64"
).split()


TRAINING = "--optimizer adam --clip-norm 1 --seed 1 --cpu --no-progress-bar --num-workers 0".split()
"""for fairseq-train; without a process for the batches, which takes longer to start and end than it saves"""


def refused_with(
    message: str,
) -> AbstractContextManager[pytest.ExceptionInfo[AggdecError]]:
    """The block ends with an error for the user whose text matches."""
    return pytest.raises(AggdecError, match=message)


@dataclass(frozen=True)
class ToyModel:
    """What `fairseq-generate` needs."""

    data: Path
    """Folder with dictionaries and binarised splits (train, valid, test), and the plain text `test.src`."""
    checkpoint: Path


@dataclass
class Generated:
    """One sentence of fairseq-generate's output."""

    source: str = ""
    tokens: list[str] = field(default_factory=list)
    """Of the H- line."""
    score: float = 0.0
    """Of the H- line; base 2."""
    positional: list[float] = field(default_factory=list)
    """Of the P- line; base 2, EOS included."""
    steps: int | None = None
    """Of the I- line (`--print-step`)."""
    history: list[str] = field(default_factory=list)
    """The E- lines (`--retain-iter-history`)."""


def run_cli(
    command: str,
    *arguments: object,
    stdin: str | bytes = "",
    check: bool = True,
    own_process: bool = False,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run an installed console script, such as `fairseq-generate`: in this process, for the seconds that another takes.

    Args:
        command: its name.
        arguments: converted with `str`.
        stdin: text for its standard input; bytes for input that is not UTF-8.
        check: another exit code than 0 fails the test, with its output; False: it is returned, from a separate process.
        own_process: whether it has one in any case.
        cwd: the folder it runs in.
    """
    data = stdin.encode() if isinstance(stdin, str) else stdin
    words = list(map(str, arguments))
    if command == "fairseq-hydra-train" or own_process or not check:
        return _run_in_a_process(command, words, data, check, cwd)
    # PyTorch waits up to five seconds for the end of a process for the batches
    if command in ("fairseq-generate", "fairseq-validate"):
        words = ["--num-workers", "0", *words]
    [script] = entry_points(group="console_scripts", name=command)
    gc.freeze()  # tasks of other tests, which would say here what they have counted
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as output,
        redirect_stderr(io.StringIO()) as errors,
        _logged(errors),
        chdir(cwd or Path.cwd()),
    ):
        patch.setattr(sys, "argv", [command, *words])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        status = script.load()() or 0
        gc.collect()  # a task says what it has counted when it goes
    gc.unfreeze()
    assert status == 0, output.getvalue() + errors.getvalue()
    return subprocess.CompletedProcess(
        [command, *words], status, output.getvalue(), errors.getvalue()
    )


def _run_in_a_process(
    command: str, words: list[str], data: bytes, check: bool, cwd: Path | None
) -> subprocess.CompletedProcess[str]:
    line = [str(Path(sysconfig.get_path("scripts"), command)), *words]
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        line, input=data, capture_output=True, env=environment, cwd=cwd, timeout=1200
    )
    printed = done.stdout.decode(errors="replace")
    said = done.stderr.decode(errors="replace")
    assert done.returncode == 0 or not check, f"{line}\n{printed}\n{said}"
    return subprocess.CompletedProcess(line, done.returncode, printed, said)


@contextmanager
def _logged(stream: TextIO) -> Iterator[None]:
    """The log of a command goes to a stream, as in a process that has set up nothing else."""
    loggers = [logging.getLogger(name) for name in (None, "fairseq", "fairseq_aggdec")]
    levels = [logger.level for logger in loggers]
    handler = logging.StreamHandler(stream)
    form = "%(asctime)s | %(levelname)s | %(name)s | %(message)s"  # fairseq's
    handler.setFormatter(logging.Formatter(form))
    loggers[0].addHandler(handler)
    for logger in loggers:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        loggers[0].removeHandler(handler)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def stamps(folder: Path) -> dict[Path, int]:
    """When each file was written."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.stat().st_mtime_ns for path in files}


def generate_here(*arguments: object) -> str:
    """What fairseq-generate prints."""
    return run_cli("fairseq-generate", *arguments).stdout


def binarised(
    folder: Path, pairs: dict[str, list[tuple[list[str], list[str]]]]
) -> Path:
    """Write the words of source and target of each split, and run fairseq-preprocess, with one dictionary for both.

    Returns its folder.
    """
    for split, sentences in pairs.items():
        for side, language in enumerate(("src", "tgt")):
            text = "".join(" ".join(pair[side]) + "\n" for pair in sentences)
            (folder / f"{split}.{language}").write_text(text, "utf-8")
    prefixes = [f"--{split}pref={folder / split}" for split in pairs]
    command = ["-s", "src", "-t", "tgt", *prefixes, "--workers", 1]
    command += ["--joined-dictionary", "--destdir", folder / "bin"]
    run_cli("fairseq-preprocess", *command)
    return folder / "bin"


def make_toy_data(folder: Path) -> Path:
    """Make a small edit task (source with errors, target without) and binarise it with fairseq-preprocess.

    The test split holds sentences of one token and of 60, next to ordinary ones. Returns the folder for fairseq.
    """
    rng = random.Random(1)
    endings = ("a", "e", "i", "o", "u", "an", "er")
    words = [letter + ending for letter in "bdfgklmnprst" for ending in endings]

    def pair(length: int) -> tuple[list[str], list[str]]:
        target = rng.choices(words, k=length)
        source = [rng.choice(words) if rng.random() < 0.1 else word for word in target]
        return source, target

    pairs = {}
    for split, count in {"train": 240, "valid": 15, "test": 60}.items():
        lengths = [1, 1, 60, 60, 2] + [rng.randint(3, 20) for _ in range(count - 5)]
        pairs[split] = [pair(length) for length in lengths]
        rng.shuffle(pairs[split])
    data = binarised(folder, pairs)
    shutil.copy(folder / "test.src", data)
    return data


def train_toy(
    data: Path,
    folder: Path,
    options: Sequence[object] = TINY_TRANSFORMER,
    updates: int = 20,
) -> ToyModel:
    """Train a model on `make_toy_data` with stock fairseq-train (about five seconds).

    Args:
        data: what `make_toy_data` returned.
        folder: where the checkpoint goes.
        options: architecture and anything else for fairseq-train.
        updates: 20 give nearly random weights.
    """
    saving = ["--save-dir", folder, "--no-epoch-checkpoints"]
    size = ["--lr", 0.003, "--max-tokens", 2000, "--max-update", updates]
    # this plugin, where it has been imported, mends fairseq's batches
    run_cli(
        "fairseq-train", data, *TRAINING, *saving, *size, *options, own_process=True
    )
    return ToyModel(data, folder / "checkpoint_last.pt")


def parse_generate(output: str) -> dict[int, Generated]:
    """Read the S-, H-, P-, I- and E- lines of fairseq-generate and fairseq-interactive, by sentence id."""
    sentences: dict[int, Generated] = {}
    for line in output.splitlines():
        kind, _, number = line.partition("\t")[0].partition("-")
        if kind not in ("S", "H", "P", "I", "E") or not number.split("_")[0].isdigit():
            continue
        sentence = sentences.setdefault(int(number.split("_")[0]), Generated())
        fields = line.split("\t")[1:]
        if kind == "S":
            sentence.source = fields[0] if fields else ""
        elif kind == "H":
            sentence.score = float(fields[0])
            sentence.tokens = fields[1].split()
        elif kind == "P":
            sentence.positional = [float(number) for number in fields[0].split()]
        elif kind == "I":
            sentence.steps = int(fields[0])
        else:
            sentence.history.append("\t".join(fields))
    return sentences
