"""What decoding changes in the process around it, each thing in a function; docs/fairseq.md lists them.

Commands (`cli`, `bulk`) do more in processes of their own, and `compat` mends fairseq.
"""

import ctypes
import gc
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

_TRIM_THRESHOLD_BYTES = 512 * 2**20
"""free memory at the end of the heap above which glibc returns some to the system"""
_MMAP_THRESHOLD_BYTES = 32 * 2**20
"""largest block that glibc can take from the heap"""
# as in malloc.h
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_ALLOCATOR_VARIABLES = (
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "GLIBC_TUNABLES",
)
_team_lock = threading.Lock()
_team: tuple[threading.Thread, threading.Event] | None = None
"""the thread whose team of OpenMP threads sleeps, and the event that ends it; None: waits are as OpenMP has them"""
_switching = threading.Lock()
_were_on: list[bool] = []
"""what each thread within `no_garbage_collection` has found"""


@cache
def keep_freed_memory() -> bool:
    """Make glibc keep freed memory, for engines on a CPU.

    Every block allocates and frees memory for its intermediate results, in large batches tens of megabytes. glibc
    returns such large blocks to the system at once, and to fetch them again costs a page fault for every 4 kB: up to a
    third of a batch's time (docs/tried.md).

    Returns False where nothing was done: with another C library, or an allocator configured in the environment.
    """
    if any(name in os.environ for name in _ALLOCATOR_VARIABLES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        # only glibc has it; on Windows there is no CDLL(None)
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)) and bool(
        mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
    )


def shorten_waits(short: bool) -> None:
    """Shorten busy waiting in GNU OpenMP, PyTorch's thread library, or end that.

    By default its threads spin so long that two threads are many times slower than one where other processes use the
    cores. That is why it is shortened while this plugin's kernels decode, which have threads of their own. PyTorch's
    operations need it: without it they take twice as long on a quiet machine, and so does fairseq's own search.

    OpenMP has read GOMP_SPINCOUNT and OMP_WAIT_POLICY before this plugin is loaded; where one of them is set, nothing
    is changed. But it spins only briefly while it has more threads than CPUs (its manual, under GOMP_SPINCOUNT). So a
    team of threads is started that sleeps.
    """
    global _team
    if short == (_team is not None):
        return
    with _team_lock:
        if _team is not None:
            thread, ended = _team
            ended.set()
            thread.join()
            _team = None
        program = ctypes.CDLL(None)
        if not short or {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
            return
        if not hasattr(program, "GOMP_parallel"):
            return
        members = max(0, len(os.sched_getaffinity(0)) - torch.get_num_threads()) + 2
        ended = threading.Event()

        def sleep_with_team() -> None:
            # each thread calls free(NULL), which does nothing
            program.GOMP_parallel(program.free, None, members, 0)
            ended.wait()  # then the team ends with its thread

        thread = threading.Thread(
            target=sleep_with_team, name="aggdec-openmp", daemon=True
        )
        thread.start()
        _team = thread, ended


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Switch off Python's collector: before a batch's end it finds nothing, in 6 % of the time of batches of 32."""
    with _switching:
        _were_on.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _switching:
            # of the first to come, which says yes, the last to leave
            if _were_on.pop():
                gc.enable()


def gpu_is_lost(device: torch.device | None = None) -> bool:
    """Whether a GPU, None: the current one, takes no more work from this process, as after an illegal access."""
    if not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize(device)
    except RuntimeError:
        return True
    return False


def switch_off_planned_attention() -> None:
    """Switch off cuDNN's attention: it plans every new shape for a tenth of a second."""
    torch.backends.cuda.enable_cudnn_sdp(False)


def log_warnings_only() -> None:
    """Silence fairseq and this plugin for a program that loads a model, unless it has set their loggers."""
    for name in ("fairseq", "fairseq_aggdec"):
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.WARNING)
