"""PyTorch's threads on a busy machine."""

import ctypes
import os
import threading
from functools import cache

import torch


@cache
def shorten_waits() -> None:
    """Has GNU's OpenMP, whose threads PyTorch uses, wait awake only briefly, unless the user has said how long.

    By itself it waits awake so long that two threads are many times slower than one where other processes use the
    cores. What would tell it (GOMP_SPINCOUNT, OMP_WAIT_POLICY) it has read before this plugin is loaded; but where it
    has more threads than there are CPUs it waits only briefly (its manual, under GOMP_SPINCOUNT). So a team of threads
    is kept asleep.
    """
    program = ctypes.CDLL(None)
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys() or not hasattr(program, "GOMP_parallel"):
        return
    members = max(0, len(os.sched_getaffinity(0)) - torch.get_num_threads()) + 2

    def keep_team() -> None:
        program.GOMP_parallel(program.free, None, members, 0)  # each calls free(NULL), which does nothing
        threading.Event().wait()

    threading.Thread(target=keep_team, name="aggdec-openmp", daemon=True).start()
