"""Work on a text's lines in several processes, with results in order and in bounded memory."""

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
    """Yield pieces of at most `size` lines: (number of the first line, counted from 1; the lines)."""
    stream = iter(lines)
    first = 1
    while chunk := list(islice(stream, size)):
        yield first, chunk
        first += len(chunk)


def in_processes(
    make: Callable[[], Callable[[_Item], _Result]], items: Iterable[_Item], workers: int
) -> Iterator[_Result]:
    """Yield `make()(item)` for every item, in order; at most 4 x `workers` items are read ahead.

    Args:
        make: makes the function; called once in each process, at its first item.
        items: the items, large enough to be worth sending to another process.
        workers: number of processes; one worker, or one item, needs no other process.

    Raises:
        AggdecError: a process has died. Exceptions of `make` and of its function are raised, too.
    """
    items = iter(items)
    first = list(islice(items, 2))
    items = chain(first, items)
    if workers == 1 or len(first) < 2:
        yield from map(make(), items)
        return
    # forked workers share the modules that this process has loaded
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _start_worker, (make,)) as pool:
        try:
            yield from bounded_map(lambda item: pool.submit(_work, item), items, 4 * workers)
        except BrokenProcessPool:
            raise AggdecError("a worker process died (out of memory?); try fewer --workers") from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def bounded_map(submit: Callable[[_Item], Future[_Result]], items: Iterable[_Item], window: int) -> Iterator[_Result]:
    """Yield results in the order of the items; at most `window` items are read ahead."""
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
    # only the parent answers an interrupt; a worker ends when its parent was killed
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
    if _function is None:  # not when the process starts, so that an error reaches the caller who waits for the result
        _function = _make()
    return _function(item)
