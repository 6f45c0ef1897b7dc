"""Which functions are captured, kept, and called without a graph; the capture is a function of the test's."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.engine.graphs.graph_cache import (
    Capture,
    Function,
    Graph,
    GraphCache,
    is_out_of_memory,
)
from fairseq_aggdec.errors import AggdecError

CPU = torch.device("cpu")
Pass = Callable[[], None]


def times_two(numbers: Tensor) -> Sequence[Tensor]:
    return 2 * numbers, numbers + 1


def pass_of(graphs: GraphCache, key: str, function: Function = times_two) -> Graph:
    return graphs.get((key,), 3, lambda: (function, ()))


def captures(function: Pass) -> Pass:
    """As on a GPU: the function is called to warm up, and again by every replay."""
    function()
    return function


def out_of_memory(function: Pass) -> Pass:
    raise torch.cuda.OutOfMemoryError("out of memory")


@pytest.mark.parametrize("capture", [None, captures])
def test_a_pass_reads_the_numbers_of_the_host_and_keeps_its_buffers(
    capture: Capture | None,
) -> None:
    graphs = GraphCache(CPU, None if capture is None else lambda: capture)
    for start in (0, 5):
        graph = pass_of(graphs, "a")
        graph.host_inputs()[:] = torch.arange(start, start + 3)
        graphs.run(graph)
        if start == 0:
            host = graph.read()
            device = graph.results[0]
    assert graph.read().tolist() == host.tolist() == [10, 12, 14]
    assert graph.results[0].tolist() == device.tolist() == [6, 7, 8]


def test_the_pass_that_was_not_used_for_longest_goes() -> None:
    graphs = GraphCache(CPU, lambda: captures, most=2)
    first = pass_of(graphs, "a")
    second = pass_of(graphs, "b")
    assert pass_of(graphs, "a") is first
    pass_of(graphs, "c")
    assert pass_of(graphs, "a") is first
    assert pass_of(graphs, "b") is not second


def test_memory_that_has_moved_ends_all_graphs_and_their_pool() -> None:
    pools: list[Capture] = []

    def new_pool() -> Capture:
        pools.append(lambda function: captures(function))
        return pools[-1]

    graphs = GraphCache(CPU, new_pool)
    before = pass_of(graphs, "a")
    graphs.run(before)
    graphs.clear()
    assert pass_of(graphs, "a") is not before
    assert len(pools) == 2


def test_a_pass_that_cannot_be_captured_runs_without_and_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried = []

    def not_the_large_one(function: Pass) -> Pass:
        tried.append(function)
        return out_of_memory(function) if len(tried) == 2 else captures(function)

    graphs = GraphCache(CPU, lambda: not_the_large_one)
    for key in ("small", "large", "large", "small"):
        graph = pass_of(graphs, key)
        graph.host_inputs().fill(4)
        graphs.run(graph)
        assert graph.read().tolist() == [8, 8, 8]
    assert len(tried) == 3, (
        "the memory of all graphs was freed, and the large pass was not tried again"
    )
    (warning,) = caplog.records
    assert (
        warning.getMessage()
        == "the pass large runs without a CUDA graph from now on, slower and as exact: out of memory"
    )


def test_a_graph_that_cannot_be_launched_is_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def launches_once(function: Pass) -> Pass:
        replays: list[int] = []

        def replay() -> None:
            replays.append(1)
            if len(replays) > 1:
                raise RuntimeError("no memory for the graph")
            function()

        return replay

    graphs = GraphCache(CPU, lambda: launches_once)
    for value in (1, 2, 3):
        graph = pass_of(graphs, "a")
        graph.host_inputs().fill(value)
        graphs.run(graph)
        assert graph.read().tolist() == [2 * value] * 3
    assert "the pass a runs without a CUDA graph" in caplog.text


def test_memory_that_does_not_suffice_is_recognised_by_its_cause() -> None:
    """A capture that it breaks ends with an error of its own, and only PyTorch's allocator has a type for it."""
    of_others = (
        "Triton Error [CUDA]: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED",
    )
    for cause in (torch.OutOfMemoryError(), *map(RuntimeError, of_others)):
        error = RuntimeError("the capture has ended")
        error.__context__ = cause
        assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("out of resource: shared memory"))


def test_a_mistake_in_a_pass_is_not_hidden() -> None:
    def wrong(numbers: Tensor) -> Sequence[Tensor]:
        raise AggdecError("this source is too long")

    graphs = GraphCache(CPU, lambda: captures)
    with pytest.raises(AggdecError, match="too long"):
        graphs.run(pass_of(graphs, "a", wrong))
