"""The choice of a model's backend. No other file of the engine, of decoding or of generation asks for a device.

| backend | computes | where |
|---|---|---|
| `plain` | PyTorch's operations, one by one | anywhere; the reference |
| `native` | the kernels in C | a CPU with AVX2 or AVX-512, single precision |
| `cuda` | Triton kernels for up to 48 tokens a pass, else PyTorch's operations | a GPU, half precision |
"""

import logging
import math
import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.cuda.launching import why_no_triton
from fairseq_aggdec.engine.native import modules
from fairseq_aggdec.engine.native.backend import NATIVE, native_backend, refuse_options
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.errors import AggdecError

logger = logging.getLogger(__name__)


def choose_backend(weight: Tensor, arithmetic: Arithmetic, activation: Any = None) -> PlainBackend:
    """The backend of a model with such weights and such an activation in its layers.

    Raises `AggdecError` where no backend has this arithmetic on the weight's device.
    """
    device = weight.device
    if not is_asynchronous(device):
        native = native_backend(weight, arithmetic, activation)
        if native is not None:
            return native
        plain = PlainBackend(arithmetic, weight)
        if modules.kernels() is not None:
            plain.choice = NATIVE  # scores in single precision are chosen from in C, whoever has computed them
        return plain
    refuse_options(arithmetic, _why_not_by_kernels(weight, arithmetic))
    _plan_no_attention()
    return PlainBackend(arithmetic, weight, waits=True)


def backend_of_graphs(weight: Tensor, arithmetic: Arithmetic, kernels: bool) -> PlainBackend:
    """The backend of a model with such weights whose passes are captured; `kernels`: by Triton, if they have its type.

    Raises `AggdecError` for --int8 and --bit-exact where these kernels cannot.
    """
    waits = is_asynchronous(weight.device)
    if waits:
        _plan_no_attention()
    if kernels and weight.dtype in (torch.float16, torch.bfloat16) and arithmetic.precision == "own":
        from fairseq_aggdec.engine.cuda.backend import CudaBackend  # imports Triton

        return CudaBackend(arithmetic, weight, waits)
    refuse_options(arithmetic, _why_not_by_kernels(weight, arithmetic))
    return PlainBackend(arithmetic, weight, waits)


def _plan_no_attention() -> None:
    """Switch off cuDNN's attention for the process: it plans every new shape for a tenth of a second."""
    torch.backends.cuda.enable_cudnn_sdp(False)


def has_triton(device: torch.device) -> bool:
    """Whether Triton kernels compute passes of few tokens in half precision. The log says why a GPU has none."""
    if _wanted() != "cuda" and (_wanted() or not is_asynchronous(device)):
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
    if arithmetic.precision != "own":
        return f"have no --{arithmetic.precision} on a GPU: take --fp16 in its place, or add --cpu"
    if not has_triton(weight.device):
        why = _why_no_kernels(weight.device) or f"AGGDEC_BACKEND={_wanted()} leaves them out"
        return f"are missing here ({why}): leave the option out"
    return "compute in half precision on a GPU: add --fp16, or --cpu for single precision"


def in_graphs(device: torch.device, arithmetic: Arithmetic) -> bool:
    """Whether passes are captured as CUDA graphs, over buffers that stay where they are."""
    may_be = arithmetic.is_judged or arithmetic.precision != "bf16"
    return may_be and _wanted() != "plain" and (is_asynchronous(device) or _wanted() != "")


def _wanted() -> str:
    """AGGDEC_BACKEND: `plain` captures nothing, `graphs` leaves Triton out; by default a GPU has both.

    On a CPU `graphs` and `cuda` rehearse a GPU's passes, uncaptured; Triton is then interpreted (TRITON_INTERPRET=1).
    """
    wanted = os.environ.get("AGGDEC_BACKEND", "")
    if wanted not in ("", "plain", "graphs", "cuda"):
        raise AggdecError(f"AGGDEC_BACKEND={wanted}: give plain, graphs or cuda, or leave it out")
    return wanted


SWITCHES = ("loops", "early", "middle")
"""ways to compute on a GPU that have not run on one"""


def is_on(switch: str) -> bool:
    """Whether AGGDEC_GPU names a switch, as `AGGDEC_GPU=loops`; by default none is on."""
    named = set(filter(None, os.environ.get("AGGDEC_GPU", "").split(",")))
    if unknown := named.difference(SWITCHES):
        raise AggdecError(f"AGGDEC_GPU={','.join(sorted(unknown))}: give some of {', '.join(SWITCHES)}, or none")
    return switch in named


def is_asynchronous(device: torch.device) -> bool:
    """Whether the host waits for the device when it reads a number."""
    return device.type != "cpu"


def memory_of(device: torch.device) -> float:
    """The bytes of a device's memory; of a CPU, which can use its disk, no limit."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else math.inf


def on_device(device: torch.device) -> AbstractContextManager[Any]:
    """Make a GPU the current one, on which kernels are launched."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def arithmetic_of_drafts(arithmetic: Arithmetic, weight: Tensor) -> Arithmetic:
    """The arithmetic of a drafter with verified drafts: 8-bit integers where there are kernels for them.

    `arithmetic`: the verifier's; `weight`: of the verifier, for its device and type.
    """
    is_plain = not is_asynchronous(weight.device) and weight.dtype == torch.float32 and arithmetic.precision == "own"
    found = modules.kernels() if is_plain else None
    precision = "int8" if found is not None and found.quantises else arithmetic.precision
    return Arithmetic(precision, is_judged=True)
