"""Runs fairseq-train in a process of its own: all that it says goes to a file, how far it is to the terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Logged:
    """A line of fairseq-train's log with figures."""

    kind: str
    """`train_inner` or `valid`"""
    seconds: float
    """when it came, on this process's clock"""
    figures: dict[str, Any]


def train(arguments: Sequence[str], log: Path, updates: int) -> int:
    """Train to the end, with a progress bar; a stopped training goes on. Returns the number of the last update.

    Args:
        arguments: of fairseq-train; they ask for a log in JSON.
        log: the file to which its output is appended.
        updates: how many updates there will be.

    Raises:
        AggdecError: fairseq-train ended with an error.
    """
    shown: dict[str, str] = {}
    done = 0
    with ExitStack() as stack:
        bar = None
        for line in stack.enter_context(closing(logged(arguments, log))):
            if line.kind == "valid":
                shown["accepted"] = str(line.figures.get("valid_accepted"))
                continue
            done = int(line.figures["num_updates"])
            if bar is None:  # what an earlier run has done says nothing about the time left
                bar = stack.enter_context(Progress(updates, " updates", initial=done))
            bar.set_postfix({"loss": str(line.figures.get("loss")), **shown}, refresh=False)
            bar.update(done - bar.n)
    return done


def logged(arguments: Sequence[str], log: Path) -> Generator[Logged, None, None]:
    """Run fairseq-train with this plugin; gives the lines of its log that have figures, as they come.

    Raises:
        AggdecError: it ended with an error.
    """
    plugin = Path(fairseq_aggdec.__path__[0]).absolute()
    command = [sys.executable, "-m", "fairseq_cli.train", *arguments, "--user-dir", str(plugin)]
    last = ""
    with log.open("a", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", env={**_KEPT_MEMORY, **os.environ},
            close_fds=False,  # the lock of the folder stays with it, should this process be killed
        )  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                file.write(line)
                file.flush()
                last = line.strip() or last
                found = re.search(r"\b(train_inner|valid)[ :|]+(\{.*\})$", line)
                if found:
                    yield Logged(found[1], time.monotonic(), json.loads(found[2]))
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
