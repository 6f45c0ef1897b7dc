"""The choice of what computes a model. No other file of the engine, of decoding or of generation asks for a device.

| backend | computes | where |
|---|---|---|
| `plain` | PyTorch's operations, one by one | anywhere; the reference |
| `native` | the kernels in C | a CPU with AVX2 or AVX-512, single precision |
| `cuda` | Triton kernels for up to 48 tokens a pass, else PyTorch's operations | a GPU, half precision |
"""

import os
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.cuda.launching import why_no_triton
from fairseq_aggdec.engine.native import modules
from fairseq_aggdec.engine.native.backend import NATIVE, native_backend, refuse_options
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.errors import AggdecError


def choose_backend(weight: Tensor, arithmetic: Arithmetic, activation: Any = None) -> PlainBackend:
    """The backend of a model with such weights and such an activation in its layers.

    Raises `AggdecError` where no backend has this arithmetic on the weight's device.
    """
    device = weight.device
    if not host_waits(device):
        native = native_backend(weight, arithmetic, activation)
        if native is not None:
            return native
        plain = PlainBackend(arithmetic, weight)
        if modules.kernels() is not None:
            plain.choice = NATIVE  # scores in single precision are chosen from in C, whoever has computed them
        return plain
    refuse_options(arithmetic, f"compute on the CPU only, not on {device.type}: leave it out, or add --cpu")
    # cuDNN plans every new shape for a tenth of a second, and here shapes are always new
    torch.backends.cuda.enable_cudnn_sdp(False)
    return PlainBackend(arithmetic, weight, waits=True)


def backend_of_graphs(weight: Tensor, arithmetic: Arithmetic, kernels: bool) -> PlainBackend:
    """The backend of a model with such weights whose passes are captured; `kernels`: by Triton, if they have its type.

    Raises `AggdecError` for --int8 and --bit-exact where these kernels cannot.
    """
    waits = host_waits(weight.device)
    if kernels and weight.dtype in (torch.float16, torch.bfloat16) and arithmetic.precision == "own":
        from fairseq_aggdec.engine.cuda.backend import CudaBackend  # imports Triton

        return CudaBackend(arithmetic, weight, waits)
    kind = str(weight.dtype).removeprefix("torch.")
    refuse_options(arithmetic, f"on a GPU are Triton's in half precision (--fp16), without --int8; here: {kind}")
    return PlainBackend(arithmetic, weight, waits)


def has_triton(device: torch.device) -> bool:
    """Whether Triton kernels compute passes of few tokens in half precision."""
    return (_wanted() == "cuda" or (host_waits(device) and _wanted() == "")) and why_no_triton() is None


def in_graphs(device: torch.device, arithmetic: Arithmetic) -> bool:
    """Whether passes are captured as CUDA graphs, over buffers that stay where they are."""
    return not arithmetic.fixed_shapes and _wanted() != "plain" and (host_waits(device) or _wanted() != "")


def _wanted() -> str:
    """AGGDEC_BACKEND: `plain` captures nothing, `graphs` leaves Triton out; by default a GPU has both.

    On a CPU `graphs` and `cuda` rehearse a GPU's passes, uncaptured; Triton is then interpreted (TRITON_INTERPRET=1).
    """
    wanted = os.environ.get("AGGDEC_BACKEND", "")
    if wanted not in ("", "plain", "graphs", "cuda"):
        raise AggdecError(f"AGGDEC_BACKEND={wanted}: give plain, graphs or cuda, or leave it out")
    return wanted


def host_waits(device: torch.device) -> bool:
    """Whether the host waits for the device when it reads a number."""
    return device.type != "cpu"


def arithmetic_of_drafts(arithmetic: Arithmetic, weight: Tensor) -> Arithmetic:
    """The arithmetic of a drafter with verified drafts: 8-bit integers where there are kernels for them.

    `arithmetic`: the verifier's; `weight`: of the verifier, for its device and type.
    """
    is_plain = not host_waits(weight.device) and weight.dtype == torch.float32 and arithmetic.precision == "own"
    found = modules.kernels() if is_plain else None
    precision = "int8" if found is not None and found.quantises else arithmetic.precision
    return Arithmetic(precision, is_judged=True)
