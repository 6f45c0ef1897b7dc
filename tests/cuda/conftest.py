"""Tests on a GPU. Where there is none they are not collected; AGGDEC_TEST_DEVICE=cpu rehearses them.

They ran once as a whole, 62 cases on one H200 at commit 117cb7459fb1 (27 November 2026; docs/gpu.md), and passed. Cases
that asked the same were taken out since; what changed has been rehearsed on a CPU alone, where nothing is captured and
Triton is interpreted. `scripts/gpu_day.sh right` runs them beside `aggdec verify`.
"""

import os

import pytest
import torch

_DEVICE = os.environ.get("AGGDEC_TEST_DEVICE") or (
    "cuda" if torch.cuda.is_available() else None
)
collect_ignore_glob = [] if _DEVICE else ["test_*.py"]


@pytest.fixture(scope="session")
def device() -> torch.device:
    assert _DEVICE is not None
    return torch.device(_DEVICE)


@pytest.fixture
def graphs(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes are captured; a CPU has the same passes, uncaptured."""
    if device.type == "cpu":
        monkeypatch.setenv("AGGDEC_BACKEND", "graphs")
