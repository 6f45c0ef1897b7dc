"""PyTorch's threads on a busy machine."""

import ctypes
import os
import threading
from functools import cache

import torch


@cache
def shorten_waits() -> None:
    """Shorten busy waiting in GNU OpenMP, PyTorch's thread library, unless GOMP_SPINCOUNT or OMP_WAIT_POLICY is set.

    By default its threads spin so long that two threads are many times slower than one where other processes use the
    cores. OpenMP has read both variables before this plugin is loaded, but it spins only briefly while it has more
    threads than CPUs (its manual, under GOMP_SPINCOUNT). So a team of threads is started that sleeps.
    """
    program = ctypes.CDLL(None)
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys() or not hasattr(program, "GOMP_parallel"):
        return
    members = max(0, len(os.sched_getaffinity(0)) - torch.get_num_threads()) + 2

    def sleep_with_team() -> None:
        program.GOMP_parallel(program.free, None, members, 0)  # each thread calls free(NULL), which does nothing
        threading.Event().wait()

    threading.Thread(target=sleep_with_team, name="aggdec-openmp", daemon=True).start()
