"""Running the workers of `aggdec decode` in processes of this machine or on a Ray cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from fairseq_aggdec.bulk.shards import DecodedShard, Shard
from fairseq_aggdec.bulk.worker import Worker
from fairseq_aggdec.errors import AggdecError


def run_local(shards: Sequence[Shard], worker: Worker, workers: int) -> Generator[DecodedShard]:
    """Decodes shards in processes of this machine; the first takes the first GPU, the second the next, and so on.

    Args:
        shards: the shards to decode.
        worker: the worker, not yet started, of which each process has a copy.
        workers: the number of processes.

    Yields:
        the decoded shards, in any order.

    Raises:
        AggdecError: a worker has raised it, or has died.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fairseq_aggdec.bulk.worker"])  # imported once, for all
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
"""the worker of this process, one of those that `run_local` started"""


def _start(numbers: Any, worker: Worker) -> None:
    global _worker
    _worker = worker
    logging.getLogger().setLevel(logging.WARNING)  # fairseq logs every model, the plugin every shard
    os.environ.setdefault("LOCAL_RANK", str(numbers.get()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this worker when its parent ends, also by a kill: it would go on holding a GPU's memory."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _decode(shard: Shard) -> DecodedShard:
    return _worker.decode(shard)


def run_ray(shards: Sequence[Shard], worker: Worker, workers: int, threads: int, cpu: bool) -> Generator[DecodedShard]:
    """Decodes shards by Ray Data, in the cluster of RAY_ADDRESS or of this machine, else in a new one on this machine.

    A worker that dies is replaced, and its shard is decoded again.

    Args:
        shards: the shards to decode; all machines must have their files.
        worker: the worker, not yet started, of which each actor of Ray has a copy.
        workers: the number of actors.
        threads: the number of threads of a worker.
        cpu: use no GPU; otherwise each worker takes one, if the cluster has any.

    Yields:
        the decoded shards, in any order.

    Raises:
        AggdecError: Ray is not installed, the cluster is too small, or a worker has raised it.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise AggdecError("--engine ray needs Ray: pip install 'ray[data]', or take --engine local") from error

    started = not ray.is_initialized()
    if started:
        ray.init(logging_level="ERROR", log_to_driver=False, include_dashboard=False)
    try:
        there = ray.cluster_resources()
        on_gpus = not cpu and there.get("GPU", 0) > 0
        room = int(there["GPU"] if on_gpus else there.get("CPU", 0) // threads)
        if room < workers:
            raise AggdecError(
                f"--workers {workers}: the Ray cluster has room for {room}, at "
                f"{'a GPU' if on_gpus else f'--threads {threads}'} each; ask for fewer"
            )
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        tasks = ray.data.from_items(
            [{"shard": pickle.dumps(shard)} for shard in shards], override_num_blocks=len(shards)
        )
        done = tasks.map(
            _RayWorker,
            fn_constructor_args=(worker,),
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=None if on_gpus else threads,
            num_gpus=1 if on_gpus else None,
        )
        for row in done.iter_rows():
            decoded = pickle.loads(row["decoded"])
            if isinstance(decoded, Exception):
                raise decoded
            yield decoded
    finally:
        if started:
            ray.shutdown()


class _RayWorker:
    """A worker as an actor of Ray. It returns its errors: Ray would wrap a raised one in many lines."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __call__(self, row: dict[str, bytes]) -> dict[str, bytes]:
        try:
            decoded: DecodedShard | Exception = self._worker.decode(pickle.loads(row["shard"]))
        except (AggdecError, OSError) as error:
            decoded = error
        return {"decoded": pickle.dumps(decoded)}
