"""The lines of a text worked on by several processes, in order and in bounded memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Any, TypeVar

from fairseq_aggdec.errors import AggdecError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def chunks(lines: Iterable[_Item], size: int) -> Iterator[tuple[int, list[_Item]]]:
    """Splits lines into (number of the first line, counted from 1; lines) of at most `size` lines."""
    stream = iter(lines)
    first = 1
    while chunk := list(islice(stream, size)):
        yield first, chunk
        first += len(chunk)


def in_processes(
    make: Callable[[], Callable[[_Item], _Result]], items: Iterable[_Item], workers: int
) -> Iterator[_Result]:
    """Yields `make()(item)` of every item, in their order; at most 4 x `workers` items are read ahead.

    Args:
        make: called once in each process, when its first item comes.
        items: what there is to do, in portions that are worth sending to another process.
        workers: number of processes; 1 works in this one, and so does a single item.

    Raises:
        AggdecError: a process died; whatever `make` and what it makes raise is raised here.
    """
    items = iter(items)
    first = list(islice(items, 2))
    items = chain(first, items)
    if workers == 1 or len(first) < 2:
        yield from map(make(), items)
        return
    # Forked workers share what this process has loaded, and need no import of their own.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _start_worker, (make,)) as pool:
        try:
            yield from bounded_map(lambda item: pool.submit(_work, item), items, 4 * workers)
        except BrokenProcessPool:
            raise AggdecError("a worker process died (out of memory?); try fewer --workers") from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def bounded_map(submit: Callable[[_Item], Future[_Result]], items: Iterable[_Item], window: int) -> Iterator[_Result]:
    """Results in the order of the items, with at most `window` items read ahead of the result being waited for."""
    pending: deque[Future[_Result]] = deque()
    for item in items:
        pending.append(submit(item))
        if len(pending) >= window:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


_make: Callable[[], Callable[[Any], Any]]
_function: Callable[[Any], Any] | None = None


def _start_worker(make: Callable[[], Callable[[Any], Any]]) -> None:
    global _make, _function
    # The parent alone answers an interrupt; a worker whose parent was killed must not wait for work for ever.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _make, _function = make, None


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(item: Any) -> Any:
    global _function
    if _function is None:  # here, and not when the process starts, so that an error reaches who waits for the result
        _function = _make()
    return _function(item)
