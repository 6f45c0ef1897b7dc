"""Decoding shards in this process, in several of this machine, or on a Ray cluster; what torchrun's variables say."""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from fairseq_aggdec.bulk.folder import Decoded, Shard, ShardFolder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.progress import Progress

logger = logging.getLogger(__name__)

_Done = Generator[tuple[Any, Decoded]]


class Worker(Protocol):
    """What decodes shards, and can be pickled before its first one, for which it loads the models.

    The outputs of a shard depend neither on the shards before it nor on the worker.
    """

    def decode(self, shard: Any) -> Decoded:
        """The outputs of a shard."""


@dataclass(frozen=True)
class Workers:
    """Where shards are decoded."""

    engine: str = "local"
    """`local` or `ray`"""
    number: int = 1
    """processes, or actors of Ray"""
    threads: int = 1
    """of each of Ray's actors"""
    cpu: bool = False
    """use no GPU"""

    @property
    def here(self) -> bool:
        """Whether this process decodes."""
        return self.engine == "local" and self.number == 1


def decode_shards(
    shards: Sequence[Shard],
    folder: ShardFolder,
    worker: Worker,
    workers: Workers,
    unit: str,
    until: float = math.inf,
) -> None:
    """Decode the shards that the folder does not hold, with a progress bar that counts in `unit`.

    No further shard is decoded after `until`, on the clock of `time.monotonic`.

    Raises:
        AggdecError: a worker has raised it or has died, or the folder holds something else.
    """
    left = [shard for shard in shards if not folder.is_finished(shard)]
    total, size_left = (sum(shard.size for shard in some) for some in (shards, left))
    logger.info(f"to decode: {size_left:,} of {total:,} {unit}, {len(left):,} of {len(shards):,} shards")
    bar = Progress(total, f" {unit}", total - size_left)
    with bar, closing(_decoded(left, worker, workers)) as done:  # ends the workers, whatever happens
        for shard, decoded in done:
            folder.write(shard, decoded)
            bar.update(shard.size)
            if time.monotonic() > until:
                return


def _decoded(shards: Sequence[Shard], worker: Worker, workers: Workers) -> _Done:
    if workers.engine == "ray" and shards:
        return _by_ray(shards, worker, workers)
    if workers.here or len(shards) <= 1:
        return ((shard, worker.decode(shard)) for shard in shards)
    return _by_processes(shards, worker, min(workers.number, len(shards)))


def _by_processes(shards: Sequence[Shard], worker: Worker, workers: int) -> _Done:
    """Processes of this machine: the first takes the first GPU, the second the next, and so on."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([type(worker).__module__])  # imported once, for all
    numbers = context.SimpleQueue()
    for number in range(workers):
        numbers.put(number)
    others = multiprocessing.active_children()  # of the program that has called this
    try:
        with ProcessPoolExecutor(workers, context, _start, (numbers, worker)) as pool:
            try:
                for done in as_completed([pool.submit(_decode, shard) for shard in shards]):
                    yield done.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                children = [child for child in multiprocessing.active_children() if child not in others]
                for child in children:
                    child.terminate()
                for child in children:
                    child.join()
                raise
    except BrokenProcessPool as error:
        raise AggdecError(
            "a worker has died: was it killed, or the memory full? Start the same command again, and it goes on"
        ) from error


_worker: Worker
"""the worker of this process, one of those that `_by_processes` started"""


def _start(numbers: Any, worker: Worker) -> None:
    global _worker
    _worker = worker
    logging.getLogger().setLevel(logging.WARNING)  # fairseq logs every model, the plugin every shard
    os.environ.setdefault("LOCAL_RANK", str(numbers.get()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent ends, also by a kill: it would go on holding a GPU's memory."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _decode(shard: Shard) -> tuple[Shard, Decoded]:
    return shard, _worker.decode(shard)


def _by_ray(shards: Sequence[Shard], worker: Worker, workers: Workers) -> _Done:
    """Actors of Ray, in the cluster of RAY_ADDRESS or of this machine, else in a new one on this machine.

    An actor that dies is replaced, and its shard is decoded again. All machines must have the files that are read.
    """
    try:
        import ray
        from ray.util import ActorPool
    except ImportError as error:
        raise AggdecError("--engine ray needs Ray: pip install ray, or take --engine local") from error

    started = not ray.is_initialized()
    if started:
        ray.init(logging_level="ERROR", log_to_driver=False, include_dashboard=False)
    try:
        there = ray.cluster_resources()
        on_gpus = not workers.cpu and there.get("GPU", 0) > 0
        room = int(there["GPU"] if on_gpus else there.get("CPU", 0) // workers.threads)
        if room < workers.number:
            raise AggdecError(
                f"--workers {workers.number}: the Ray cluster has room for {room}, at "
                f"{'a GPU' if on_gpus else f'--threads {workers.threads}'} each; ask for fewer"
            )
        resources: dict[str, int] = {"num_gpus": 1} if on_gpus else {"num_cpus": workers.threads}
        kind = ray.remote(_Actor).options(max_restarts=-1, max_task_retries=-1, **resources)
        actors = [kind.remote(worker) for _ in range(min(workers.number, len(shards)))]
        yield from ActorPool(actors).map_unordered(lambda actor, shard: actor.decode.remote(shard), shards)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    finally:
        if started:
            ray.shutdown()


class _Actor:
    """A worker as an actor of Ray."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def decode(self, shard: Shard) -> tuple[Shard, Decoded]:
        return shard, self._worker.decode(shard)


def rank_of_environment() -> tuple[int, int]:
    """RANK and WORLD_SIZE, by which several commands share the shards; (0, 1) where they are not set.

    Raises:
        AggdecError: they are no whole numbers, or RANK is not one of 0 to WORLD_SIZE - 1.
    """
    rank, size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None or size is None:
        return 0, 1
    if not (rank.strip().isdecimal() and size.strip().isdecimal() and int(rank) < int(size)):
        raise AggdecError(
            f"RANK={rank} and WORLD_SIZE={size} in the environment: give each of WORLD_SIZE processes a RANK of its "
            "own, the first one 0"
        )
    return int(rank), int(size)


def device_of_environment(cpu: bool, precision: str | None = None) -> torch.device:
    """A GPU if there is one (under torchrun the one of LOCAL_RANK), else the CPU.

    Raises:
        AggdecError: half precision is asked for on the CPU.
    """
    if cpu or not torch.cuda.is_available():
        if precision == "fp16":
            raise AggdecError("--fp16 is for GPUs; on a CPU leave it out")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device
