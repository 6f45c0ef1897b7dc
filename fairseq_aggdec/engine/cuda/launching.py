"""Whether Triton is there, and how kernels are launched. Modules with kernels are imported only where it is."""

from typing import Any

import torch

_OLDEST = (3, 6)
"""of Triton: the kernels ran with it on a GPU"""
LEAST_CAPABILITY = (8, 0)
"""of a GPU that runs them, see `capability`"""
_failures: list[str] = []


def give_up(reason: str) -> None:
    """Use no kernels in this process any more: they do not run here, or compute something else."""
    _failures.append(reason)


def why_no_triton() -> str | None:
    """Why no kernels can be compiled here, or None where they can."""
    if _failures:
        return _failures[0]
    try:
        import triton
    except ImportError as error:
        return f"Triton cannot be imported: {error}"
    if tuple(map(int, triton.__version__.split(".")[:2])) < _OLDEST:
        return (
            f"Triton {triton.__version__} is older than {'.'.join(map(str, _OLDEST))}"
        )
    return None


def capability(device: torch.device) -> tuple[int, int]:
    """The generation of a GPU, such as (9, 0); (0, 0) of another device."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else (0, 0)


def launch_options(device: torch.device) -> dict[str, Any]:
    """Arguments of every launch of a kernel on this device.

    From capability 9.0 on, a kernel starts while the one before it still runs (programmatic dependent launch), and
    waits for its results where it calls `wait`. Every kernel must wait, one that reads no results, too: otherwise the
    one after it could start before the one before it has ended.
    """
    return (
        {"pdl": True, "launch_pdl": True}
        if capability(device) >= (9, 0)
        else {"pdl": False}
    )
