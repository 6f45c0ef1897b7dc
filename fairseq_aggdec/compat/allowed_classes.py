"""Classes that may be unpickled from a fairseq checkpoint. All others are refused before anything of them runs."""

import argparse
import pickle
import re
from typing import Any

import numpy as np


class PlainDtype:
    """Replaces `numpy.dtype` while a checkpoint is unpickled; only types of numbers are allowed.

    numpy trusts the flags that it unpickles, so a forged type could present raw bytes as pointers to objects. Here only
    a kind (`b i u f c`), an item size and a byte order are read.
    """

    def __init__(self, code: str, *_: object) -> None:
        if not (isinstance(code, str) and re.fullmatch(r"[biufc]\d{1,2}", code)):
            raise pickle.UnpicklingError(
                f"numpy data of type {code!r}, which is not a number"
            )
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder("=" if state[1] == "|" else state[1])


class PlainArray(np.ndarray):
    """Replaces `numpy.ndarray` while a checkpoint is unpickled; when saved again it is an ordinary array."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, data = state
        if not isinstance(dtype, PlainDtype):
            raise pickle.UnpicklingError("a numpy array without a numeric dtype")
        super().__setstate__((1, shape, dtype.dtype, is_fortran, data))

    def __reduce__(self) -> Any:
        return np.array(self).__reduce__()


def _plain_array(*_: object) -> PlainArray:
    """Replace `numpy._core.multiarray._reconstruct`: returns an empty array, which `__setstate__` fills."""
    return PlainArray((0,), np.int8)


def _plain_scalar(dtype: PlainDtype, data: bytes) -> Any:
    """Replace `numpy._core.multiarray.scalar`."""
    return np.frombuffer(data, dtype.dtype)[0]


def allowed_globals() -> list[Any]:
    """The classes for `torch.serialization.safe_globals`, beside tensors and Python's containers.

    They occur in checkpoints of fairseq-train (plain, `--eval-bleu`, `--store-ema`, fairseq-hydra-train) and in
    old-style checkpoints; numpy 2 moved its functions from `numpy.core` to `numpy._core`.
    """
    allowed: list[Any] = [argparse.Namespace, PlainDtype, PlainArray]
    allowed += [(PlainDtype, "numpy.dtype"), (PlainArray, "numpy.ndarray")]
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        allowed += [
            (_plain_array, f"{module}._reconstruct"),
            (_plain_scalar, f"{module}.scalar"),
        ]
    return allowed
