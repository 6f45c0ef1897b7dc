"""Options that say how the engine computes: in which precision, whether exactly to the bit, by which means."""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from omegaconf.errors import InterpolationKeyError

from fairseq_aggdec.engine.cuda_graph import CudaGraphs
from fairseq_aggdec.engine.precision import Arithmetic
from fairseq_aggdec.errors import AggdecError

_LOSSLESS = ("greedy", "iad", "gad", "blockwise", "hybrid", "aggressive")


@dataclass
class ArithmeticOptions(FairseqDataclass):
    """For the command line and for hydra alike."""

    int8: bool = field(
        default=False,
        metadata={
            "help": "multiply 8-bit integers, on a CPU: faster, and nearly the same output. Lossless then means: the "
            "same output as --decoding greedy --int8. (fairseq's --bf16 does likewise with bfloat16)"
        },
    )
    bit_exact: bool = field(
        default=False,
        metadata={
            "help": "lossless modes: tokens and scores that are the same to the last bit in all these modes and in "
            "every batch; refused where the device cannot keep it"
        },
    )
    cuda_graphs: bool = field(
        default=False,
        metadata={
            "help": "on a GPU: record the decoder's steps as CUDA graphs, for a few batch sizes and block widths, and "
            "repeat them: the same output with less waiting for the processor. Experimental"
        },
    )
    # fairseq's own; fairseq-generate moves models to fp16 itself, and does not read the other
    bf16: bool = II("common.bf16")
    fp16: bool = II("common.fp16")


def check_arithmetic_options(cfg: Any) -> None:
    """Refuse options that exclude each other, and those that the mode does not read.

    Args:
        cfg: the task's configuration.

    Raises:
        AggdecError: naming the options.
    """
    mode = str(cfg.decoding)
    precisions = [f"--{name}" for name in ("int8", "bf16", "fp16") if _given(cfg, name)]
    if len(precisions) > 1:
        raise AggdecError(f"{' and '.join(precisions)}: one precision at a time, please")
    if cfg.int8 and mode == "beam":
        raise AggdecError(
            "--int8 is for this plugin's own modes and not for --decoding beam, fairseq's search: use --decoding "
            "aggressive or greedy"
        )
    if cfg.cuda_graphs:
        _check_cuda_graphs(mode, cfg.int8)
    if cfg.bit_exact and mode not in _LOSSLESS:
        raise AggdecError(
            f"--bit-exact is read by --decoding {', '.join(_LOSSLESS)} only, and not by {mode}: leave it out"
        )


def arithmetic_of(cfg: Any) -> Arithmetic:
    """What the options ask for.

    Args:
        cfg: the task's configuration.
    """
    precision = "int8" if cfg.int8 else "bf16" if _given(cfg, "bf16") else "own"
    return Arithmetic(precision, cfg.bit_exact, CudaGraphs if cfg.cuda_graphs else None)  # type: ignore[arg-type]


def _check_cuda_graphs(mode: str, int8: bool) -> None:
    if mode == "beam":
        raise AggdecError(
            "--cuda-graphs is for this plugin's own modes and not for --decoding beam, fairseq's search: use "
            "--decoding aggressive or greedy"
        )
    if int8:
        raise AggdecError("--cuda-graphs is for GPUs, and --int8 computes on the CPU only: leave one of them out")
    if not torch.cuda.is_available():
        raise AggdecError("--cuda-graphs needs a GPU, and PyTorch finds none: check nvidia-smi, or leave it out")


def _given(cfg: Any, name: str) -> bool:
    """Whether an option is set that may be fairseq's; a task by itself stands outside fairseq's whole configuration."""
    try:
        return getattr(cfg, name) is True
    except InterpolationKeyError:
        return False
