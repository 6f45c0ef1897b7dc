"""Runs fairseq-train in another process: all that it says goes to a file, how far it is to the terminal."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import fairseq_aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.progress import Progress

_KEPT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}
"""freed memory stays with the process: on a CPU, to fetch it again for each large tensor costs time"""
_END = 20  # seconds that a stopped training has to end by itself


def train(arguments: Sequence[str], log: Path, done: int, updates: int) -> int:
    """Train from update `done` to `updates`, with a progress bar. Returns how many updates were trained.

    See `logged` for the other arguments and what is raised.
    """
    shown: dict[str, str] = {}
    with (
        Progress(updates, " updates", initial=done) as bar,
        closing(logged(arguments, log)) as lines,
    ):
        for kind, figures in lines:
            if kind == "valid":
                shown["accepted"] = str(figures.get("valid_accepted"))
            else:
                bar.set_postfix(
                    {"loss": str(figures.get("loss")), **shown}, refresh=False
                )
                bar.update(int(figures["num_updates"]) - bar.n)
        return int(bar.n)


def logged(
    arguments: Sequence[str], log: Path
) -> Generator[tuple[str, dict[str, Any]], None, None]:
    """Run fairseq-train with this plugin; gives the figures of its log as they come, with `train_inner` or `valid`.

    Args:
        arguments: of fairseq-train; they ask for a log in JSON.
        log: the file to which its output is appended.

    Raises:
        AggdecError: it ended with an error.
    """
    plugin = Path(fairseq_aggdec.__path__[0]).absolute()
    command = [
        sys.executable,
        "-m",
        "fairseq_cli.train",
        *arguments,
        "--user-dir",
        str(plugin),
    ]
    last = ""
    with log.open("a", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", env={**_KEPT_MEMORY, **os.environ},
            # the lock of the folder stays with it, should this process be killed
            close_fds=False,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                file.write(line)
                file.flush()
                last = line.strip() or last
                if found := re.search(r"\b(train_inner|valid)[ :|]+(\{.*\})$", line):
                    yield found[1], json.loads(found[2])
            process.wait()
        finally:  # also after Ctrl-C, nothing is left running
            if process.poll() is None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_END)
                process.kill()
            process.stdout.close()
    if process.returncode != 0:
        reason = last.removeprefix("error: ") or f"exit code {process.returncode}"
        raise AggdecError(f"{log}: fairseq-train ended with an error: {reason}")
