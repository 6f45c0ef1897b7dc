"""Peak memory of a mode, measured in a process that does nothing else (papers/000 Table 16).

In the process that runs all modes side by side their memory could not be told apart.
"""

import logging
import multiprocessing
import resource
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.modes import Mode
from fairseq_aggdec.lab.benchmarking.rounds import WARM_UP_BATCHES
from fairseq_aggdec.lab.benchmarking.subject import Runners, Subject

Peak = tuple[int, int | None]
"""bytes on the host, and on the device where there is one that PyTorch measures"""


def peak_memory(subject: Subject, mode: Mode, batch_sizes: Sequence[int], threads: int) -> list[Peak]:
    """Memory of a process that decodes some batches by one mode, at each batch size: models, libraries and all.

    What reading the checkpoint takes for a moment is not counted, where the system can leave it out (Linux).

    Args:
        subject: what to decode.
        mode: how.
        batch_sizes: one after another, in this order.
        threads: of PyTorch.

    Raises:
        AggdecError: the process came to an end; most likely there was not enough memory.
    """
    context = multiprocessing.get_context("spawn")
    try:
        quiet = partial(logging.basicConfig, level=logging.WARNING)  # before fairseq is imported, which sets up its own
        with ProcessPoolExecutor(1, mp_context=context, initializer=quiet) as pool:
            return pool.submit(_peaks, subject, mode, batch_sizes, threads).result()
    except BrokenProcessPool as error:
        raise AggdecError(
            f"mode {mode.name}: the process that measures its memory was killed; use --no-memory, or free some memory"
        ) from error


def _peaks(subject: Subject, mode: Mode, batch_sizes: Sequence[int], threads: int) -> list[Peak]:
    """In the process of its own."""
    import fairseq_aggdec

    torch.set_num_threads(threads)
    fairseq_aggdec.register()
    peaks = []
    with Runners(subject) as runners:
        for batch_size in batch_sizes:
            runner = runners.make(mode, batch_size)
            _forget_peak()
            longest = range(len(runner.batches))[-WARM_UP_BATCHES:]
            for number in longest:
                runner.decode(number)
            runner.wait()
            on_device = subject.device == "cuda" and mode.peer is None
            peaks.append((_host_peak(), torch.cuda.max_memory_allocated() if on_device else None))
    return peaks


def _forget_peak() -> None:
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # sets the peak to what is taken now


def _host_peak() -> int:
    """Bytes; of the memory map since `_forget_peak`, else since the process began."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
