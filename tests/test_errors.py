"""Uncaught user errors are one line; every other exception keeps its traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.helpers import run_cli

COMMAND = "from fairseq_aggdec.errors import *; import sys; sys.argv = ['bin/fairseq-generate']; "


@pytest.mark.parametrize(
    ("error", "in_stderr", "has_traceback"),
    [
        ("AggdecError('say why')", "error: say why\n", False),
        ("AssertionError('--path required')", "error: --path required\n", False),  # fairseq's own checks of options
        ("FileNotFoundError(2, 'No such file', 'a.txt')", "error: a.txt: No such file\n", False),
        ("KeyError('other')", "KeyError: 'other'", True),
    ],
)
def test_excepthook(error: str, in_stderr: str, has_traceback: bool) -> None:
    _raise(f"raise {error}", in_stderr, has_traceback)


def test_an_error_in_whose_place_fairseq_raised_another_is_the_one_that_is_printed() -> None:
    program = "try: raise AggdecError('say why')\nexcept Exception: raise Exception('Cannot load model parameters')"
    _raise(program, "error: say why\n", False)


def _raise(statements: str, in_stderr: str, has_traceback: bool) -> None:
    program = f"{COMMAND}install_excepthook(); install_excepthook()\n{statements}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert in_stderr in done.stderr
    assert ("Traceback" in done.stderr) == has_traceback


def test_an_interruption_is_one_line_and_ends_as_the_signal_has_it() -> None:
    """As of fairseq-generate with this plugin."""
    handled = "import signal; signal.signal(2, signal.default_int_handler)"  # a shell's background jobs ignore it
    program = f"{handled}; {COMMAND}install_excepthook(); signal.raise_signal(2)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (-2, "interrupted\n")


def test_a_command_in_a_process_of_its_own_exits_with_one(tmp_path: Path) -> None:
    done = run_cli("aggdec", "compare", tmp_path / "a", tmp_path / "b", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {tmp_path}/a: No such file or directory\n"
