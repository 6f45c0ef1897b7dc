"""Tests on a GPU. Where there is none they are not collected; AGGDEC_TEST_DEVICE=cpu rehearses them."""

import os

import pytest
import torch

_DEVICE = os.environ.get("AGGDEC_TEST_DEVICE") or ("cuda" if torch.cuda.is_available() else None)
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
