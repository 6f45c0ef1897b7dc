"""Options that say how the engine computes: in which precision, and whether exactly to the bit."""

from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from omegaconf.errors import InterpolationKeyError

from fairseq_aggdec.engine.arithmetic.precision import Arithmetic, Precision
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
    if cfg.bit_exact and mode not in _LOSSLESS:
        raise AggdecError(
            f"--bit-exact is read by --decoding {', '.join(_LOSSLESS)} only, and not by {mode}: leave it out"
        )


def arithmetic_of(cfg: Any) -> Arithmetic:
    """What the options ask for.

    Args:
        cfg: the task's configuration.
    """
    precision: Precision = "int8" if cfg.int8 else "bf16" if _given(cfg, "bf16") else "own"
    return Arithmetic(precision, cfg.bit_exact)


def _given(cfg: Any, name: str) -> bool:
    """Whether an option is set that may be fairseq's; a task by itself stands outside fairseq's whole configuration."""
    try:
        return getattr(cfg, name) is True
    except InterpolationKeyError:
        return False
