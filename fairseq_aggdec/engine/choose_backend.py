"""The choice of a model's backend. Other files ask it, not for a device; `graphs/` and `cuda/` are a GPU's.

| backend | computes | where |
|---|---|---|
| `plain` | PyTorch's operations, one by one | anywhere; the reference |
| `native` | the kernels in C | a CPU with AVX2 or AVX-512, single precision |
| `cuda` | Triton kernels for up to 48 tokens a pass, else PyTorch's operations | a GPU, half precision |
"""

import logging
import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.cuda.launching import (
    LEAST_CAPABILITY,
    capability,
    why_no_triton,
)
from fairseq_aggdec.engine.native import library
from fairseq_aggdec.engine.native.backend import NATIVE, native_backend, refuse_options
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.process import switch_off_planned_attention

logger = logging.getLogger(__name__)

_OF_KERNELS = (torch.float16, torch.bfloat16)  # types of weights


class Way(NamedTuple):
    """One way to run a model."""

    name: str
    captures: bool = False
    """whether passes are captured as CUDA graphs, over buffers that stay where they are"""
    kernels: bool = False
    """whether Triton kernels compute where they are the faster way"""


# on a CPU the kernels in C, where they compute such a model
ONE_BY_ONE = Way("PyTorch's operations one by one")
GRAPHS = Way("CUDA graphs", captures=True)
KERNELS = Way("Triton kernels in CUDA graphs", captures=True, kernels=True)


def ways(weight: Tensor, arithmetic: Arithmetic) -> list[Way]:
    """The ways to run a model with such a weight, the fastest first."""
    may_be = arithmetic.is_judged or arithmetic.precision != "bf16"
    if (
        not may_be
        or _wanted() == "plain"
        or not (runs_async(weight.device) or _wanted())
    ):
        return [ONE_BY_ONE]
    by_kernels = weight.dtype in _OF_KERNELS and has_triton(weight.device)
    if arithmetic.bit_exact:  # no other way has the bits
        return [KERNELS if by_kernels else GRAPHS]
    is_single = weight.dtype == torch.float32 and not _wanted()
    if (
        is_single
        and capability(weight.device) >= LEAST_CAPABILITY
        and why_no_triton() is None
    ):
        _say(
            "this GPU decodes in single precision: --fp16 (precision='fp16') has faster kernels"
        )
    return [*[KERNELS] * by_kernels, GRAPHS, ONE_BY_ONE]


def choose_backend(
    weight: Tensor,
    arithmetic: Arithmetic,
    activation: Any = None,
    way: Way = ONE_BY_ONE,
) -> PlainBackend:
    """The backend of a model with such weights and such an activation in its layers, run in this way.

    Raises `AggdecError` where no backend has this arithmetic on the weight's device.
    """
    sync_is_costly = runs_async(weight.device)
    if sync_is_costly:
        switch_off_planned_attention()
    elif not way.captures:
        native = native_backend(weight, arithmetic, activation)
        if native is not None:
            return native
        plain = PlainBackend(arithmetic, weight)
        if library.kernels() is not None:
            # scores in single precision are chosen from in C, whoever has computed them
            plain.choice = NATIVE
        return plain
    if way.kernels and weight.dtype in _OF_KERNELS and arithmetic.precision == "model":
        from fairseq_aggdec.engine.cuda.backend import CudaBackend  # imports Triton

        return CudaBackend(arithmetic, weight, sync_is_costly)
    refuse_options(arithmetic, _why_not_by_kernels(weight, arithmetic))
    return PlainBackend(arithmetic, weight, sync_is_costly)


def has_triton(device: torch.device) -> bool:
    """Whether Triton kernels compute passes of few tokens in half precision. The log says why a GPU has none."""
    if _wanted() != "cuda" and (_wanted() or not runs_async(device)):
        return False
    reason = _why_no_kernels(device)
    if reason is not None:
        _say(f"no Triton kernels compute here, slower and as exact: {reason}")
    return reason is None


def _why_no_kernels(device: torch.device) -> str | None:
    """Why no Triton kernels run on a device, or None where they do."""
    reason = why_no_triton()
    if reason is None and device.type == "cuda":
        from fairseq_aggdec.engine.cuda.backend import why_no_launch  # imports Triton

        reason = why_no_launch(device)
    return reason


@cache
def _say(message: str) -> None:
    """Log a message, once."""
    logger.warning(message)


def _why_not_by_kernels(weight: Tensor, arithmetic: Arithmetic) -> str:
    """Why a GPU has no kernels for such weights in this arithmetic, for `refuse_options`."""
    if arithmetic.precision != "model":
        return f"have no --{arithmetic.precision} on a GPU: take --fp16 in its place, or add --cpu"
    if not has_triton(weight.device):
        why = (
            _why_no_kernels(weight.device)
            or f"AGGDEC_BACKEND={_wanted()} leaves them out"
        )
        return f"are missing here ({why}): leave the option out"
    return (
        "compute in half precision on a GPU: add --fp16, or --cpu for single precision"
    )


def _wanted() -> str:
    """AGGDEC_BACKEND: `plain` captures nothing, `graphs` leaves Triton out; by default a GPU has both.

    On a CPU `graphs` and `cuda` rehearse a GPU's passes, uncaptured; Triton is then interpreted (TRITON_INTERPRET=1).
    """
    wanted = os.environ.get("AGGDEC_BACKEND", "")
    if wanted not in ("", "plain", "graphs", "cuda"):
        raise AggdecError(
            f"AGGDEC_BACKEND={wanted}: give plain, graphs or cuda, or leave it out"
        )
    return wanted


def runs_async(device: torch.device) -> bool:
    """Whether operations are queued on a device, so that the host synchronizes when it reads a value."""
    return device.type != "cpu"


def memory_of(device: torch.device) -> float:
    """The bytes of a device's memory; of a CPU, which can use its disk, no limit."""
    return (
        torch.cuda.get_device_properties(device).total_memory
        if device.type == "cuda"
        else math.inf
    )


def on_device(device: torch.device) -> AbstractContextManager[Any]:
    """Make a GPU the current one, on which kernels are launched."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def weight_of(model: nn.Module, device: torch.device | str = "cpu") -> Tensor:
    """A model's weight, for its device and type; of a model without any, an empty one on the batch's `device`."""
    weight = next(model.parameters(), None)
    return torch.empty(0, device=device) if weight is None else weight


def on_its_way(x: Tensor) -> Callable[[], Tensor]:
    """Copy a tensor to the host, which waits for a GPU only when it calls the result to have the copy."""
    if x.device.type != "cuda":
        return x.cpu
    copied = x.to("cpu", non_blocking=True)  # into pinned memory
    arrival = torch.cuda.current_stream(x.device).record_event()

    def arrived() -> Tensor:
        arrival.synchronize()
        return copied

    return arrived


def arithmetic_of_drafts(arithmetic: Arithmetic, weight: Tensor) -> Arithmetic:
    """The arithmetic of a drafter with verified drafts: 8-bit integers where there are kernels for them.

    `arithmetic`: the verifier's; `weight`: of the verifier, for its device and type.
    """
    is_plain = (
        not runs_async(weight.device)
        and weight.dtype == torch.float32
        and arithmetic.precision == "model"
    )
    found = library.kernels() if is_plain else None
    precision = (
        "int8" if found is not None and found.quantises else arithmetic.precision
    )
    return Arithmetic(precision, is_judged=True)
