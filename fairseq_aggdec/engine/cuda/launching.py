"""Whether Triton is there, and how kernels are launched. Modules with kernels are imported only where it is."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

_OLDEST = (3, 6)
"""of Triton: the kernels ran with it on a GPU"""


def why_no_triton() -> str | None:
    """Why kernels cannot be compiled here, or None where they can."""
    try:
        found = version("triton")
    except PackageNotFoundError:
        return "Triton is not installed"
    if tuple(map(int, found.split(".")[:2])) < _OLDEST:
        return f"Triton {found} is older than {'.'.join(map(str, _OLDEST))}"
    return None


def launch_options(device: torch.device) -> dict[str, Any]:
    """Arguments of every launch of a kernel on this device.

    From capability 9.0 on, a kernel starts while the one before it still runs (programmatic dependent launch), and
    waits for its results where it calls `wait`. Every kernel must wait, one that reads no results, too: otherwise the
    one behind it could start before the one before it has ended.
    """
    is_early = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)
    return {"pdl": True, "launch_pdl": True} if is_early else {"pdl": False}
