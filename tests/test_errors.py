"""Uncaught user errors are one line; every other exception goes to Python's own hook."""

import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError, install_excepthook
from tests.support.helpers import run_cli

COMMAND = "from fairseq_aggdec.errors import *; import sys; sys.argv = ['bin/fairseq-generate']; "


def replaced() -> Exception:
    """What fairseq raises in place of an error."""
    error = Exception("Cannot load model parameters")
    error.__context__ = AggdecError("say why")
    return error


@pytest.mark.parametrize(
    "error, printed",
    [
        (AggdecError("say why"), "error: say why\n"),
        # fairseq's own checks of options
        (AssertionError("--path required"), "error: --path required\n"),
        (FileNotFoundError(2, "No such file", "a.txt"), "error: a.txt: No such file\n"),
        (replaced(), "error: say why\n"),
        (KeyError("other"), "KeyError: 'other'\n"),
    ],
)
def test_excepthook(
    error: Exception,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(sys, "argv", ["bin/fairseq-generate"])
    install_excepthook()
    install_excepthook()
    sys.excepthook(type(error), error, error.__traceback__)
    assert capsys.readouterr().err == printed


def test_an_interruption_is_one_line_and_ends_as_the_signal_has_it() -> None:
    """As of fairseq-generate with this plugin."""
    # a shell's background jobs ignore it
    handled = "import signal; signal.signal(2, signal.default_int_handler)"
    program = f"{handled}; {COMMAND}install_excepthook(); signal.raise_signal(2)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (-2, "interrupted\n")


def test_a_command_in_a_process_of_its_own_exits_with_one(tmp_path: Path) -> None:
    done = run_cli("aggdec", "compare", tmp_path / "a", tmp_path / "b", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {tmp_path}/a: No such file or directory\n"
