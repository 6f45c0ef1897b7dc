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
from itertools import islice
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
    function: Callable[[_Item], _Result], items: Iterable[_Item], workers: int
) -> Iterator[_Result]:
    """Yield `function(item)` for every item, in order; at most 4 x `workers` items are read ahead.

    Raises:
        AggdecError: a process has died. Exceptions of the function are raised, too.
    """
    if workers == 1:
        yield from map(function, items)
        return
    # forked processes share the function's data and the modules that this process has loaded
    with ProcessPoolExecutor(
        workers, multiprocessing.get_context("fork"), _start, (function,)
    ) as pool:
        pending: deque[Future[_Result]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(_work, item))
                if len(pending) >= 4 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool:
            raise AggdecError(
                "a worker process died (out of memory?); try fewer --workers"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


_function: Callable[[Any], Any]


def _start(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent answers an interrupt
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _work(item: Any) -> Any:
    return _function(item)


def _end_with_parent() -> None:
    """End this process when its parent was killed: it would keep the work folder locked."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
