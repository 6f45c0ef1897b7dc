"""Toy data, toy models and the real command line, for tests of the whole chain."""

import io
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support import fork_server

PLUGIN = Path(__file__).resolve().parents[2] / "fairseq_aggdec"
"""the value of --user-dir"""
TINY_TRANSFORMER = (
    "--arch transformer --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 32 --decoder-embed-dim 32 "
    "--encoder-ffn-embed-dim 64 --decoder-ffn-embed-dim 64 --encoder-attention-heads 2 --decoder-attention-heads 2 "
    "--share-all-embeddings --max-source-positions 64 --max-target-positions 64"
).split()


TRAINING = "--optimizer adam --clip-norm 1 --seed 1 --cpu --no-progress-bar --num-workers 0".split()
"""for fairseq-train; without a process for the batches, which takes longer to start and end than it saves"""


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
    stdin: str | bytes | None = None,
    check: bool = True,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run an installed console script, such as `fairseq-generate`, in a process of its own (see `fork_server`).

    Args:
        command: its name.
        arguments: converted with `str`.
        stdin: text for its standard input; bytes for input that is not UTF-8.
        check: fail, with its output, on another exit code than 0.
        cwd: the folder it runs in.
    """
    line = [str(fork_server.environment() / "bin" / command), *map(str, arguments)]
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONIOENCODING": "utf-8"}
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        line,
        input=data or b"",
        capture_output=True,
        env=environment,
        cwd=cwd,
        timeout=1200,
    )
    result = subprocess.CompletedProcess(
        line,
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )
    assert not check or result.returncode == 0, (
        f"{' '.join(line)}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    )
    return result


class ToBeKilled:
    """A Python program in a process forked from `fork_server`; what starts it is another process."""

    def __init__(self, program: str, folder: Path) -> None:
        """`program`: may import from `tests`; `folder`: where it may leave the number of its process."""
        self._number = folder / "process-number"
        self._number.unlink(missing_ok=True)
        first = f"import os; from pathlib import Path; Path({str(self._number)!r}).write_text(str(os.getpid())); "
        command = [str(fork_server.environment() / "bin/python"), "-c", first + program]
        self._started = subprocess.Popen(command, cwd=Path(__file__).parents[2])

    def is_alive(self) -> bool:
        return self._started.poll() is None

    def kill(self) -> None:
        """Returns when it is dead."""
        os.kill(int(self._number.read_text()), signal.SIGKILL)
        assert self._started.wait() == -signal.SIGKILL

    def ends_well(self) -> bool:
        return self._started.wait(120) == 0


def generate_here(*arguments: object) -> str:
    """fairseq-generate in this process, for the seconds that another one takes to start; what it prints.

    Without a process of its own for the batches, for whose end PyTorch waits up to five seconds.
    """
    from fairseq_cli import generate

    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as output,
    ):
        patch.setattr(
            sys,
            "argv",
            ["fairseq-generate", "--num-workers", "0", *map(str, arguments)],
        )
        generate.cli_main()
    return output.getvalue()


def make_toy_data(
    folder: Path, sentences: int = 60, joined: bool = True, seed: int = 1
) -> Path:
    """Make a small edit task (source with errors, target without) and binarise it with fairseq-preprocess.

    The test split holds sentences of one token and of 60, next to ordinary ones. Returns the folder for fairseq.
    """
    rng = random.Random(seed)
    words = [
        a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er")
    ]

    def pair(length: int) -> tuple[str, str]:
        target = rng.choices(words, k=length)
        source = [rng.choice(words) if rng.random() < 0.1 else word for word in target]
        return " ".join(source), " ".join(target)

    for split, count in (
        ("train", 4 * sentences),
        ("valid", sentences // 4),
        ("test", sentences),
    ):
        lengths = [1, 1, 60, 60, 2] + [rng.randint(3, 20) for _ in range(count - 5)]
        pairs = [pair(length) for length in lengths]
        rng.shuffle(pairs)
        for side, language in enumerate(("src", "tgt")):
            text = "".join(sentence[side] + "\n" for sentence in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    prefixes = [
        f"--{split}pref={folder / split}" for split in ("train", "valid", "test")
    ]
    binarised = folder / "bin"
    options = ["--joined-dictionary"] if joined else []
    run_cli(
        "fairseq-preprocess",
        "-s",
        "src",
        "-t",
        "tgt",
        *prefixes,
        "--destdir",
        binarised,
        "--workers",
        1,
        *options,
    )
    (binarised / "test.src").write_text(
        (folder / "test.src").read_text(encoding="utf-8"), encoding="utf-8"
    )
    return binarised


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
    run_cli("fairseq-train", data, *TRAINING, *saving, *size, *options)
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
            sentence.score, sentence.tokens = float(fields[0]), fields[1].split()
        elif kind == "P":
            sentence.positional = [float(number) for number in fields[0].split()]
        elif kind == "I":
            sentence.steps = int(fields[0])
        else:
            sentence.history.append("\t".join(fields))
    return sentences
