"""Decoding shards in this process, or in several of this machine; what torchrun's variables say."""

import logging
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import Any

import torch

from fairseq_aggdec.bulk.folder import Decoded, Shard, ShardFolder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.progress import Progress

logger = logging.getLogger(__name__)

_Decode = Callable[[Any], Decoded]
"""decodes a shard, loading the models for the first one; can be pickled. Outputs depend on no other shard"""
_Done = Generator[tuple[Any, Decoded]]


def decode_shards(
    shards: Sequence[Shard],
    folder: ShardFolder,
    decode: _Decode,
    workers: int,
    unit: str,
    until: float = math.inf,
) -> None:
    """Decode the shards that the folder does not hold, with a progress bar that counts in `unit`.

    One worker decodes in this process, several in processes of their own. No further shard is decoded after `until`, on
    the clock of `time.monotonic`.

    Raises:
        AggdecError: a worker has raised it or has died, or the folder holds something else.
    """
    left = [shard for shard in shards if not folder.is_finished(shard)]
    total, size_left = (sum(shard.size for shard in some) for some in (shards, left))
    logger.info(
        f"to decode: {size_left:,} of {total:,} {unit}, {len(left):,} of {len(shards):,} shards"
    )
    bar = Progress(total, f" {unit}", total - size_left)
    # ends the workers, whatever happens
    with bar, closing(_decoded(left, decode, workers)) as done:
        for shard, decoded in done:
            folder.write(shard, decoded)
            bar.update(shard.size)
            if time.monotonic() > until:
                return


def _decoded(shards: Sequence[Shard], decode: _Decode, workers: int) -> _Done:
    if workers == 1 or len(shards) <= 1:
        return ((shard, decode(shard)) for shard in shards)
    return _by_processes(shards, decode, min(workers, len(shards)))


def _by_processes(shards: Sequence[Shard], decode: _Decode, workers: int) -> _Done:
    """Processes of this machine: the first takes the first GPU, the second the next, and so on."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([decode.__module__])  # imported once, for all
    ranks = context.SimpleQueue()
    for rank in range(workers):
        ranks.put(rank)
    others = multiprocessing.active_children()  # of the program that has called this
    try:
        with ProcessPoolExecutor(workers, context, _start, (ranks, decode)) as pool:
            try:
                futures = {pool.submit(_run, shard): shard for shard in shards}
                for done in as_completed(futures):
                    yield futures[done], done.result()
            except BaseException:
                # leave no process behind
                pool.shutdown(wait=False, cancel_futures=True)
                children = [
                    child
                    for child in multiprocessing.active_children()
                    if child not in others
                ]
                for child in children:
                    child.terminate()
                for child in children:
                    child.join()
                raise
    except BrokenProcessPool as error:
        raise AggdecError(
            "a worker has died: was it killed, or the memory full? Start the same command again, and it goes on"
        ) from error


_decode_here: _Decode
"""in a process that `_by_processes` has started"""


def _start(ranks: Any, decode: _Decode) -> None:
    global _decode_here
    _decode_here = decode
    # fairseq logs every model, the plugin every shard
    logging.getLogger().setLevel(logging.WARNING)
    os.environ.setdefault("LOCAL_RANK", str(ranks.get()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent ends, also by a kill: it would keep holding a GPU's memory."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(shard: Shard) -> Decoded:
    return _decode_here(shard)


def rank_of_environment() -> tuple[int, int]:
    """RANK and WORLD_SIZE, by which several commands share the shards; (0, 1) where they are not set.

    Raises:
        AggdecError: they are no whole numbers, or RANK is not one of 0 to WORLD_SIZE - 1.
    """
    rank = os.environ.get("RANK")
    size = os.environ.get("WORLD_SIZE")
    if rank is None or size is None:
        return 0, 1
    if not (
        rank.strip().isdecimal() and size.strip().isdecimal() and int(rank) < int(size)
    ):
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
    device = torch.device(
        "cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count()
    )
    torch.cuda.set_device(device)
    return device
