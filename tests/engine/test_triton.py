"""The kernels of the GPU engine on a machine without a GPU: interpreted, and compiled."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fairseq_aggdec.engine import choose_backend as choosing
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic, Precision
from fairseq_aggdec.engine.choose_backend import (
    GRAPHS,
    KERNELS,
    ONE_BY_ONE,
    choose_backend,
    ways,
)
from fairseq_aggdec.engine.cuda.launching import why_no_triton
from fairseq_aggdec.errors import AggdecError

ROOT = Path(__file__).resolve().parents[2]
SHARED_MEMORY = 99 * 1024
"""bytes that a program can have on sm_86 and sm_89; others have more"""

CPU = torch.device("cpu")
GPU = torch.device("cuda", 0)

needs_triton = pytest.mark.skipif(
    why_no_triton() is not None, reason=str(why_no_triton())
)


def output_of(*arguments: str, **environment: str) -> str:
    """What a new Python prints; Triton reads its variables when it is imported.

    AGGDEC_TRITON names a folder with another Triton (pip install --no-deps --target FOLDER triton==3.6.0).
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "TRITON_"))
    }
    kept["PYTHONPATH"] = os.pathsep.join(
        [kept.get("AGGDEC_TRITON", ""), kept.get("PYTHONPATH", "")]
    ).strip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**kept, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_triton
@pytest.mark.parametrize(
    "name", sorted(path.name for path in ROOT.glob("tests/triton/test_*.py"))
)
def test_interpreted_kernels_compute_what_pytorch_does(name: str) -> None:
    printed = output_of(
        "pytest",
        "-qx",
        "-p",
        "no:cacheprovider",
        f"tests/triton/{name}",
        TRITON_INTERPRET="1",
    )
    assert " passed" in printed
    assert "skipped" not in printed


@needs_triton
def test_compiled_kernels_fit_into_every_gpu(tmp_path: Path) -> None:
    """With Triton 3.6.0, passes of more than 8 tokens of layers of 1,024 numbers want for registers."""
    version, *lines = output_of(
        "tests.triton.compiling", TRITON_CACHE_DIR=str(tmp_path)
    ).splitlines()
    most_stack, of_project = {"3.6.0": (88, 40 * 1024)}.get(version, (0, 8 * 1024))
    around = {
        "project",
        "read_chunk",
        "choose",
        "sort_entries",
        "embed",
        "advance",
        "take_step",
    }
    of_layers = {"product", "projections", "attention", "norm"}
    assert {line.split()[0] for line in lines} == around | of_layers
    starts = {
        (name, start)
        for name, kind, _, start, *_ in map(str.split, lines)
        if kind == "sm_90"
    }
    assert starts == {(name, "after-its-wait") for name in around | of_layers}
    stack, shared = zip(*(map(int, line.split()[-2:]) for line in lines), strict=True)
    assert max(stack) == most_stack
    assert max(shared) <= SHARED_MEMORY
    # what is multiplied goes from memory to registers; shared are the sums of all warps, of 16 rows
    most = {
        line.split()[0]: size for size, line in sorted(zip(shared, lines, strict=True))
    }
    assert (most["product"], most["project"]) == (8 * 16 * 64 * 4, of_project)


def test_a_missing_or_an_old_triton_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__="3.5.1"))
    assert why_no_triton() == "Triton 3.5.1 is older than 3.6"
    monkeypatch.setitem(
        sys.modules, "triton", SimpleNamespace(__version__="3.10.0+git")
    )
    assert why_no_triton() is None
    monkeypatch.setitem(sys.modules, "triton", None)
    assert str(why_no_triton()).startswith("Triton cannot be imported: ")


@needs_triton
def test_a_gpu_that_is_too_old_or_runs_no_kernel_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is asked again where a model's kernels have failed."""
    from fairseq_aggdec.engine.cuda import backend

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    for capability, reason in (
        ((7, 5), "this GPU has capability 7.5"),
        ((9, 0), "Triton cannot run a kernel ("),
    ):
        assert backend.CudaBackend(AS_THE_MODEL, torch.empty(1), True).drop_kernels()
        monkeypatch.setattr(backend, "capability", lambda device, here=capability: here)
        # as good as no GPU
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: 1 / 0)
        assert str(backend.why_no_launch(GPU)).startswith(reason)
    backend.why_no_launch.cache_clear()
    assert "Triton compiles kernels for this GPU, once" in caplog.text


def test_single_precision_compiles_no_kernel_and_is_told_that_half_precision_has_some(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    choosing._say.cache_clear()
    monkeypatch.setattr(choosing, "has_triton", lambda device: 1 / 0)
    for capability, says in (((7, 5), False), ((9, 0), True)):
        monkeypatch.setattr(
            choosing, "capability", lambda device, here=capability: here
        )
        assert ways(torch.empty(1, device="meta"), AS_THE_MODEL) == [GRAPHS, ONE_BY_ONE]
        assert ("--fp16" in caplog.text) == says


@needs_triton
@pytest.mark.parametrize(
    "wanted, precision, reason",
    [
        (
            "",
            "model",
            "--bit-exact needs this plugin's kernels, which compute in half precision on a GPU: add --fp16",
        ),
        (
            "",
            "int8",
            "--int8 needs this plugin's kernels, which have no --int8 on a GPU: take --fp16",
        ),
        (
            "graphs",
            "model",
            r"kernels, which are missing here \(AGGDEC_BACKEND=graphs leaves them out\)",
        ),
    ],
)
def test_what_a_gpu_cannot_do_is_refused_by_name(
    wanted: str, precision: Precision, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGGDEC_BACKEND", wanted)
    weight = torch.empty(1, device="meta")  # no CPU
    with pytest.raises(AggdecError, match=reason):
        choose_backend(
            weight, Arithmetic(precision, bit_exact=precision == "model"), way=KERNELS
        )
