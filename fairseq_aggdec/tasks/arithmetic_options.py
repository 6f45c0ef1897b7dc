"""Options for how the engine computes: in which precision, and whether the same to the last bit."""

from typing import Any

from fairseq_aggdec.engine.arithmetic.precision import Arithmetic, Precision
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.fairseq_fields import field_of_fairseq

_LOSSLESS = ("greedy", "iad", "gad", "blockwise", "hybrid", "aggressive")


def check_arithmetic_options(cfg: Any) -> None:
    """Raises `AggdecError` for options that exclude each other and for one that the mode does not read."""
    mode = str(cfg.decoding)
    precisions = [f"--{name}" for name in ("int8", "bf16", "fp16") if field_of_fairseq(cfg, name) is True]
    if len(precisions) > 1:
        raise AggdecError(f"{' and '.join(precisions)}: one precision at a time")
    if cfg.int8 and mode == "beam":
        raise AggdecError(
            "--int8 is for this plugin's own modes and not for --decoding beam, fairseq's search: use --decoding "
            "aggressive or greedy"
        )
    if cfg.bit_exact and precisions in (["--bf16"], ["--fp16"]):
        raise AggdecError(
            f"--bit-exact {precisions[0]}: same bits need this plugin's kernels, which compute in single precision and "
            "in --int8: leave one of the two out"
        )
    if cfg.bit_exact and mode not in _LOSSLESS:
        raise AggdecError(
            f"--bit-exact is read by --decoding {', '.join(_LOSSLESS)} only, and not by {mode}: leave it out"
        )


def arithmetic_of(cfg: Any) -> Arithmetic:
    """The arithmetic that the options ask for."""
    precision: Precision = "int8" if cfg.int8 else "bf16" if field_of_fairseq(cfg, "bf16") is True else "own"
    return Arithmetic(precision, cfg.bit_exact)
