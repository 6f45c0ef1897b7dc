"""Memory that is free stays with the process, for engines on a CPU.

Every block takes memory for its intermediate results, in large batches tens of megabytes, and gives it back. glibc
hands so much on to the system at once, and fetching it again costs a page fault for every 4 kB: up to a third of a
batch's time (docs/tried.md).
"""

import ctypes
import functools
import os

KEPT_BYTES = 512 * 2**20
"""free memory at the end of the heap from which on some is given back"""
_LARGEST = 32 * 2**20
"""the largest block that glibc can be told to take from the heap"""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_USERS_OWN = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


@functools.cache
def keep_freed_memory() -> bool:
    """Tell glibc to, for the whole process.

    Returns:
        False where nothing was done: the C library is another one, or the environment sets its allocator.
    """
    if any(name in os.environ for name in _USERS_OWN):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # only glibc has it; on Windows there is no CDLL(None)
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
