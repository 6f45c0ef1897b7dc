"""The kernels of the GPU engine on a machine without a GPU: interpreted, and compiled."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_aggdec.engine.cuda.launching import why_no_triton

ROOT = Path(__file__).resolve().parents[2]
SHARED_MEMORY = 99 * 1024
"""bytes that a program can have on sm_86 and sm_89; others have more"""

needs_triton = pytest.mark.skipif(why_no_triton() is not None, reason=str(why_no_triton()))


def output_of(*arguments: str, **environment: str) -> str:
    """What a new Python prints; Triton reads its variables when it is imported."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TRITON_"))}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**kept, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_triton
def test_interpreted_kernels_compute_what_pytorch_does() -> None:
    printed = output_of("pytest", "-q", "-p", "no:cacheprovider", "tests/triton", TRITON_INTERPRET="1")
    assert " passed" in printed
    assert "skipped" not in printed


@needs_triton
def test_compiled_kernels_fit_into_every_gpu(tmp_path: Path) -> None:
    lines = output_of("tests.triton.compiling", TRITON_CACHE_DIR=str(tmp_path)).splitlines()
    around = {"project", "read_chunk", "choose", "sort_entries", "embed"}
    assert {line.split()[0] for line in lines} == around | {"product", "projections", "attention", "norm"}
    assert [line for line in lines if int(line.split()[-1]) > SHARED_MEMORY] == []
    # what is multiplied goes from memory to registers; shared are the sums of four warps, of 16 rows and 32 symbols
    assert max(int(line.split()[-1]) for line in lines if line.startswith("project ")) == 4 * 16 * 32 * 4


def test_a_missing_or_an_old_triton_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__="3.5.1"))
    assert why_no_triton() == "Triton 3.5.1 is older than 3.6"
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__="3.10.0+git"))
    assert why_no_triton() is None
    monkeypatch.setitem(sys.modules, "triton", None)
    assert str(why_no_triton()).startswith("Triton cannot be imported: ")
