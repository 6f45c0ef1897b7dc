"""The compiled kernels: found and loaded."""

import ctypes
import logging
import math
import os
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent
_SOURCES = ("kernels.c", "beams.c")
_SWITCH = "AGGDEC_KERNELS"
I64 = ctypes.c_int64
ADDRESS = ctypes.c_void_p


class Kernels:
    """kernels.c and beams.c, compiled for the vector instructions of this processor."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError`, `AttributeError` or `ValueError` where the file cannot be loaded or lacks functions."""
        library = ctypes.CDLL(str(path))
        self.checksum = ctypes.c_uint32.in_dll(library, "aggdec_source").value
        """CRC-32 of the compiled sources"""
        self.panel: int = ctypes.c_int64.in_dll(library, "aggdec_panel").value
        """number of outputs in a panel of packed weights"""
        self.quantises = library.aggdec_quantises() != 0
        """whether this processor has products of 8-bit integers"""

        def function(name: str, *arguments: Any, returns: Any = I64) -> Any:
            compiled = getattr(library, f"aggdec_{name}")
            compiled.argtypes = arguments
            compiled.restype = returns
            return compiled

        # these return 0, or 1 where there is not enough memory
        self.product = function("product", ADDRESS, ADDRESS, ADDRESS, I64, I64, I64)
        self.encode = function("encode", *[ADDRESS] * 5, *[I64] * 4)
        self.decode = function("decode", ADDRESS, ADDRESS)

        # 0, or 1 where a token is not a symbol
        table = (ADDRESS, I64)
        inputs = (ADDRESS, ADDRESS, I64, I64, I64)
        self.embed = function(
            "embed", *table, ctypes.c_double, *table, *table, *inputs, ADDRESS, I64
        )

        # the choice of tokens
        scores = (ADDRESS, I64, I64, I64)
        bans = (I64, I64, ADDRESS)
        self.best = function("best", *scores, ADDRESS, ADDRESS, I64, returns=None)
        self.likeliest = function(
            "likeliest", *scores, *bans, ADDRESS, ADDRESS, ADDRESS, I64, returns=None
        )
        self.chain = function("chain", ADDRESS, returns=None)

        # a beam's step
        self.candidates = function("candidates", ADDRESS)
        self.take = function("take", ADDRESS)


def available_cpus(root: Path = Path("/")) -> int:
    """The number of CPUs for this process, limited by its cgroups' quotas, rounded up; `root`: of proc and sys."""
    if not hasattr(os, "sched_getaffinity"):  # macOS, which has no cgroups, either
        return os.cpu_count() or 1
    count = float(len(os.sched_getaffinity(0)))
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        folder = mount / path.strip("/")
        while folder != mount.parent:  # the quota of a folder above holds, too
            limits = _text(folder / "cpu.max").split() or [
                _text(folder / "cpu.cfs_quota_us"),
                _text(folder / "cpu.cfs_period_us"),
            ]
            quota, period = limits
            if quota.isdigit():  # no quota: "max", -1, or no file
                count = min(count, int(quota) / int(period))
            folder = folder.parent
    return max(1, math.ceil(count))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


@cache
def kernels() -> Kernels | None:
    """The kernels for this processor; None where there are none or AGGDEC_KERNELS is 0."""
    name = {"AVX512": "avx512", "AVX2": "avx2"}.get(
        torch.backends.cpu.get_cpu_capability()
    )
    if name is None or os.environ.get(_SWITCH) == "0":
        return None
    path = _FOLDER / f"kernels_{name}.so"
    try:
        found = Kernels(path)
    except (OSError, AttributeError, ValueError) as error:
        reason = str(error) if path.exists() else "they were not compiled"
    else:
        sources = b"".join((_FOLDER / source).read_bytes() for source in _SOURCES)
        if found.checksum == zlib.crc32(sources):
            return found
        reason = "they were compiled from other sources"
    logger.warning(
        f"decoding on this CPU is slower than it could be: {path.name} cannot be used ({reason}). Install the plugin "
        f"with a C compiler (python setup.py build_ext --inplace in a checkout), or set {_SWITCH}=0 to hide this"
    )
    return None


def fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    """Fields of a structure in C, all of one type; `names`: separated by blanks."""
    return [(name, kind) for name in names.split()]


def address(x: Tensor | None) -> int | None:
    """Where the numbers of a tensor begin."""
    return None if x is None else x.data_ptr()


_CPUS = available_cpus()


def threads() -> int:
    """The number of threads of a kernel."""
    return min(torch.get_num_threads(), _CPUS)


def check(status: int) -> None:
    """Raise `MemoryError` where a kernel says so."""
    if status != 0:
        raise MemoryError(
            "not enough memory for a block of this size: decode smaller batches"
        )
