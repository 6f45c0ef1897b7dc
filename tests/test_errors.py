"""Uncaught user errors are one line; every other exception keeps its traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("error", "in_stderr", "has_traceback"),
    [
        ("AggdecError('say why')", "error: say why\n", False),
        ("AssertionError('--path required')", "error: --path required\n", False),  # fairseq's own checks of options
        ("AssertionError('broken')", "AssertionError: broken", True),
        ("KeyError('other')", "KeyError: 'other'", True),
    ],
)
def test_excepthook(error: str, in_stderr: str, has_traceback: bool) -> None:
    program = f"from fairseq_aggdec.errors import *; install_excepthook(); install_excepthook(); raise {error}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert in_stderr in done.stderr
    assert ("Traceback" in done.stderr) == has_traceback
