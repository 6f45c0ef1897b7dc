"""PyTorch's threads on a busy machine."""

import ctypes
import os
import threading

import torch

_lock = threading.Lock()
_team: tuple[threading.Thread, threading.Event] | None = None
"""the thread whose team of OpenMP threads sleeps, and the event that ends it; None: waits are as OpenMP has them"""


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
    with _lock:
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
            program.GOMP_parallel(program.free, None, members, 0)  # each thread calls free(NULL), which does nothing
            ended.wait()  # then the team ends with its thread

        thread = threading.Thread(target=sleep_with_team, name="aggdec-openmp", daemon=True)
        thread.start()
        _team = thread, ended
