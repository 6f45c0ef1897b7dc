"""Measures the peak memory of each mode (papers/000 Table 16), each in another process to tell them apart."""

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
from fairseq_aggdec.lab.bench.ctranslate2_runner import CTranslate2Runner
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.rounds import WARM_UP_BATCHES
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject

Peak = tuple[int, int | None]
"""peak in bytes on the host, and on the GPU (None without one, or for a program that does not use PyTorch)"""


def peak_memory(
    subject: Subject, mode: ModeSpec, batch_sizes: Sequence[int], threads: int
) -> list[Peak]:
    """Peak memory of a process that decodes a few batches in one mode, at each batch size in turn.

    It includes the models and all libraries. On Linux, the short peak while the checkpoint is read is left out.

    Raises:
        AggdecError: the process was killed, most likely for want of memory.
    """
    context = multiprocessing.get_context("spawn")
    try:
        # before fairseq sets up its logging
        quiet = partial(logging.basicConfig, level=logging.WARNING)
        with ProcessPoolExecutor(1, mp_context=context, initializer=quiet) as pool:
            return pool.submit(_peaks, subject, mode, batch_sizes, threads).result()
    except BrokenProcessPool as error:
        raise AggdecError(
            f"mode {mode.name}: the process that measures its memory was killed; use --no-memory, or free some memory"
        ) from error


def _peaks(
    subject: Subject, mode: ModeSpec, batch_sizes: Sequence[int], threads: int
) -> list[Peak]:
    """Run `peak_memory` in the new process."""
    import fairseq_aggdec

    torch.set_num_threads(threads)
    fairseq_aggdec.register()
    peaks = []
    with Runs(subject) as runs:
        for batch_size in batch_sizes:
            runner = runs.runner(mode, batch_size)
            process = Path("/proc") / (
                str(runner.pid) if isinstance(runner, CTranslate2Runner) else "self"
            )
            on_device = subject.device == "cuda" and mode.peer is None
            if on_device:
                torch.cuda.reset_peak_memory_stats()
            with suppress(OSError):
                # the peak is now the present use
                (process / "clear_refs").write_text("5")
            longest = range(len(runner.batches))[-WARM_UP_BATCHES:]
            for index in longest:
                runner.decode(index)
            runner.wait()
            peaks.append(
                (
                    _host_peak(process / "status"),
                    torch.cuda.max_memory_allocated() if on_device else None,
                )
            )
    return peaks


def _host_peak(status: Path) -> int:
    """Peak resident memory in bytes: on Linux since `clear_refs` was written, elsewhere since this process began."""
    if status.is_file():
        return next(
            1024 * int(line.split()[1])
            for line in status.open()
            if line.startswith("VmHWM:")
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
