"""The commands that the stages of an experiment would run, by `scripts/reproduce.sh --dry-run`."""

import os
import shlex
import subprocess

from tests.configs.composing import ROOT

_PROGRAMS = (
    "python",
    "fairseq-hydra-train",
    "fairseq-generate",
    "fairseq-interactive",
    "subword-nmt",
)


def reproduce(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`scripts/reproduce.sh` with these arguments."""
    command = ["bash", str(ROOT / "scripts/reproduce.sh"), *arguments]
    return subprocess.run(
        command,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def recorded(experiment: str, *stages: str, **environment: str) -> list[list[str]]:
    """The commands as lists of words, with `work` for the folder of the work folders."""
    done = reproduce(experiment, *stages, "--dry-run", **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return [
        shlex.split(line)
        for line in done.stdout.splitlines()
        if line.startswith(_PROGRAMS)
    ]
