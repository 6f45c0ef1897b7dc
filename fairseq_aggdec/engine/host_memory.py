"""Freed memory stays with the process, for engines on a CPU.

Every block allocates and frees memory for its intermediate results, in large batches tens of megabytes. glibc returns
such large blocks to the system at once, and to fetch them again costs a page fault for every 4 kB: up to a third of a
batch's time (docs/tried.md).
"""

import ctypes
import functools
import os

TRIM_THRESHOLD_BYTES = 512 * 2**20
"""free memory at the end of the heap above which glibc returns some to the system"""
_MMAP_THRESHOLD_BYTES = 32 * 2**20
"""largest block that glibc can take from the heap"""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # as in malloc.h
_ALLOCATOR_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


@functools.cache
def keep_freed_memory() -> bool:
    """Make glibc keep freed memory, in the whole process.

    Returns False where nothing was done: with another C library, or an allocator configured in the environment.
    """
    if any(name in os.environ for name in _ALLOCATOR_VARIABLES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # only glibc has it; on Windows there is no CDLL(None)
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)) and bool(
        mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
    )
