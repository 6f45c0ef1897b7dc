"""Work in several processes: in order, in bounded memory, and over when a process cannot go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from fairseq_aggdec.data.workers import bounded_map, in_processes
from fairseq_aggdec.errors import AggdecError


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    def doubling() -> Callable[[int], int]:
        return lambda item: 2 * item

    assert list(in_processes(doubling, range(50), workers)) == list(range(0, 100, 2))


def test_a_worker_that_cannot_begin_or_dies_ends_the_work() -> None:
    def refuse() -> Callable[[int], int]:
        raise AggdecError("codes: No such file")

    def die() -> Callable[[int], int]:
        os._exit(9)

    with pytest.raises(AggdecError, match="codes: No such file"):
        list(in_processes(refuse, range(9), 2))
    with pytest.raises(AggdecError, match=r"a worker process died .*; try fewer --workers"):
        list(in_processes(die, range(9), 2))


def test_window_bounds_what_is_read_ahead() -> None:
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        for item in range(200):
            read += 1
            yield item

    def submit(item: int) -> Future[int]:
        future: Future[int] = Future()
        future.set_result(item)
        return future

    for expected, result in enumerate(bounded_map(submit, items(), window=8)):
        assert result == expected
        assert read - result <= 8
    assert read == 200
