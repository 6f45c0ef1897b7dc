"""CUDA graphs: a pass of several hundred operations, captured once, is launched by one call.

Launched one by one, an operation costs the host about 7 us, more than most of them take; a whole graph costs 10 us.
Each replay reads and writes the memory of the capture. So what goes in and what comes out has separate buffers, and
only intermediate results are in the pool that all graphs share. Where nothing is captured, on a CPU or after a failure,
the same function is called on the same buffers.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.process import gpu_is_lost, no_garbage_collection

logger = logging.getLogger(__name__)

Function = Callable[[Tensor], Sequence[Tensor]]
Capture = Callable[[Callable[[], None]], Callable[[], None]]
"""from a function without arguments to one that replays it; may call it first"""

# of one engine; a graph of a pass takes less than a megabyte beside the pool
_MOST_GRAPHS = 512
_SECONDS_TO_REPORT = 1.0
# in errors of other types than PyTorch's
_OUT_OF_MEMORY = ("out of memory", "ALLOC_FAILED")
# the first call compiles kernels and loads libraries, which a capture forbids
_WARM_UPS = 2

_versions = count()
_capturing = threading.Lock()  # PyTorch allows one capture at a time in a process


class CudaCapture:
    """Captures functions on a device. Intermediate results of all graphs share one pool of memory."""

    def __init__(self, device: torch.device, stream: torch.cuda.Stream) -> None:
        self._device = device
        self._stream = stream
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Callable[[], None]) -> Callable[[], None]:
        with _capturing, torch.cuda.device(self._device):
            caller = torch.cuda.current_stream()
            self._stream.wait_stream(caller)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.stream(self._stream):
                for _ in range(_WARM_UPS):
                    function()
                self._stream.synchronize()
                # an old engine's graph that is collected meanwhile would end the capture
                with _in_one_pool(), no_garbage_collection():
                    # other threads may allocate memory and wait meanwhile
                    graph.capture_begin(
                        pool=self._pool, capture_error_mode="thread_local"
                    )
                    try:
                        function()
                    finally:
                        graph.capture_end()
            caller.wait_stream(self._stream)
            return graph.replay


@contextmanager
def _in_one_pool() -> Iterator[None]:
    """Let a capture allocate the products' workspace in its pool, where no other graph's end can free it."""
    torch._C._cuda_clearCublasWorkspaces()
    try:
        yield
    finally:
        torch._C._cuda_clearCublasWorkspaces()


class PinnedBuffer:
    """A tensor on the host for values of a device.

    The host's memory is pinned for a GPU: then a copy can be a part of a graph, and the host does not wait for it.
    """

    @torch.inference_mode(False)  # it outlives the batch for which it is made
    def __init__(
        self, shape: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> None:
        self.on_host = torch.zeros(
            *shape, dtype=dtype, pin_memory=device.type == "cuda"
        )
        self.values = self.on_host.numpy()
        """`on_host` again: numpy writes a handful of elements in a fifth of the time"""

    def to_device(self, to: Tensor) -> Tensor:
        """Copy to the device without waiting; the host must not write before the copy is done."""
        return to.copy_(self.on_host, non_blocking=True)

    def to_host(self, values: Tensor) -> None:
        """Copy from the device to the host without synchronising; the host must not read before the copy is done."""
        self.on_host.copy_(values, non_blocking=True)


class Graph:
    """A function from integers on the host to tensors on the device, with buffers for both."""

    def __init__(
        self,
        name: str,
        function: Function,
        size: int,
        device: torch.device,
        inputs: Sequence[Tensor] = (),
    ) -> None:
        """
        Args:
            name: for messages.
            function: from `size` int64 elements on the device to results, of which the first goes to the host.
                Its tensors have the same shapes in each call, and a repeated call changes nothing.
            size: elements of its input.
            device: where it computes.
            inputs: other tensors on the device that the function reads.
        """
        self.name = name
        self.inputs = inputs
        self._device = device
        self.replay: Callable[[], None] | None = None
        self.results: list[Tensor] = []
        """but for the first, on the device, from the first run on; the next run overwrites them"""
        self._function = function
        self._host_inputs = PinnedBuffer((size,), torch.long, device)
        with torch.inference_mode(False):
            self._on_device = torch.zeros(size, dtype=torch.long, device=device)
        self._first: PinnedBuffer | None = None
        ends = [torch.cuda.Event() if device.type == "cuda" else None for _ in range(2)]
        # of the last run, and of the one before it
        self._end, self._previous_end = ends

    def host_inputs(self) -> np.ndarray:
        """The input of the next run, to be written on the host; waits until the last run has read its input."""
        self.wait()
        return self._host_inputs.values

    @torch.no_grad()
    def compute(self) -> None:
        """Copy the input to the device, run the function, and copy its first result back, without synchronising."""
        first, *others = self._function(self._host_inputs.to_device(self._on_device))
        if self._first is None:
            buffer = PinnedBuffer(first.shape, first.dtype, first.device)
            with torch.inference_mode(False):
                self.results = [torch.empty_like(other) for other in others]
            self._first = buffer  # not before there is memory for all
        self._first.to_host(first)
        for result, found in zip(self.results, others, strict=True):
            result.copy_(found)

    def record_end(self) -> None:
        """Record that a run has been launched on the current stream."""
        self._end, self._previous_end = self._previous_end, self._end
        if self._end is not None:
            self._end.record(torch.cuda.current_stream(self._device))

    def wait(self) -> None:
        """Wait for the end of the last run; raises `AggdecError` where the device has failed."""
        self._wait_for(self._end)

    def _wait_for(self, end: torch.cuda.Event | None) -> None:
        if end is None:
            return
        try:
            end.synchronize()
        except RuntimeError as error:
            raise _lost(self.name, error) from error

    def previous_result(self) -> np.ndarray:
        """The first result on the host once the run before the last has ended; the last may be writing to it."""
        self._wait_for(self._previous_end)
        assert self._first is not None
        return self._first.values

    def read(self) -> np.ndarray:
        """The first result on the host, once the run has ended; the next run overwrites it."""
        self.wait()
        assert self._first is not None
        return self._first.values


class GraphCache:
    """The graphs of an engine by key, at most `most`: the one that was not used for longest goes."""

    def __init__(
        self,
        device: torch.device,
        new_capture: Callable[[], Capture] | None,
        most: int = _MOST_GRAPHS,
        drop_kernels: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Args:
            device: where the graphs run.
            new_capture: returns a capture with a new pool; None: nothing is captured.
            most: how many graphs.
            drop_kernels: called when a pass fails; returns whether it had kernels, and computes without them now.
        """
        self._drop_kernels = drop_kernels
        self._device = device
        self._new_capture = new_capture
        self._most = most
        self._graphs: dict[Hashable, Graph] = {}
        self._uncaptured: set[str] = set()  # names of graphs that have failed
        self._captured = 0  # since the last message, in `_seconds`
        self._seconds = 0.0
        self._capture = None if new_capture is None else new_capture()
        self.version = next(_versions)
        """another value once what graphs read has moved: for the key of a graph elsewhere that reads it, too"""

    @classmethod
    def on(cls, device: torch.device, drop_kernels: Callable[[], bool]) -> "GraphCache":
        """Graphs on a device; on a CPU nothing is captured."""
        if device.type != "cuda":
            return cls(device, None, drop_kernels=drop_kernels)
        stream = torch.cuda.Stream(device)  # one for all pools
        return cls(
            device, lambda: CudaCapture(device, stream), drop_kernels=drop_kernels
        )

    def get(
        self,
        key: tuple[Hashable, ...],
        size: int,
        make: Callable[[], tuple[Function, Sequence[Tensor]]],
    ) -> Graph:
        """The graph of a key. `size`: elements of its input; `make` returns its function and its other inputs."""
        graph = self._graphs.pop(key, None)
        if graph is None:
            while len(self._graphs) >= self._most:
                # its buffers may still be in use
                self._graphs.pop(next(iter(self._graphs))).wait()
            with torch.inference_mode(False):  # inputs outlive the batch
                function, inputs = make()
            graph = Graph(" ".join(map(str, key)), function, size, self._device, inputs)
        self._graphs[key] = graph  # the last of the dictionary
        return graph

    def run(self, graph: Graph) -> None:
        """Run a graph on the current stream, without waiting. It is captured at first."""
        if (
            graph.replay is None
            and self._capture is not None
            and graph.name not in self._uncaptured
        ):
            graph.replay = self._replay_of(graph, self._capture)
        try:
            (graph.replay or graph.compute)()
        except AggdecError:
            raise
        except Exception as error:  # a fault of a kernel need not be a `RuntimeError`
            self._give_up(graph, error)
            graph.compute()
        graph.record_end()

    def clear(self) -> None:
        """Forget all graphs: the memory that they read has moved."""
        for graph in self._graphs.values():
            graph.wait()  # its buffers may still be in use
        self._graphs.clear()
        self.version = next(_versions)
        if self._new_capture is not None:
            # a pool without graphs must not be used again
            self._capture = self._new_capture()

    def _replay_of(self, graph: Graph, capture: Capture) -> Callable[[], None] | None:
        began = time.perf_counter()
        try:
            replay = capture(graph.compute)
        except AggdecError:
            raise
        except Exception as error:  # out of memory, too
            self._give_up(graph, error)
            return None
        self._captured += 1
        self._seconds += time.perf_counter() - began
        if self._seconds >= _SECONDS_TO_REPORT:
            logger.info(
                f"{self._captured} new shapes of passes were captured as CUDA graphs in {self._seconds:.1f} s"
            )
            self._captured = 0
            self._seconds = 0.0
        return replay

    def _give_up(self, graph: Graph, error: Exception) -> None:
        """Free all captured memory, and run this graph from now on without kernels if it has any, else uncaptured.

        Raises `AggdecError` where the device has failed, so that nothing can run any more.
        """
        # the end of a broken capture raises another error
        cause = error.__context__ or error
        if self._device.type == "cuda" and gpu_is_lost(self._device):
            raise _lost(graph.name, cause) from error
        graph.replay = None
        way = "Triton kernels"
        if is_out_of_memory(error) or not self._drop_kernels():
            self._uncaptured.add(graph.name)
            way = "a CUDA graph"
        self.clear()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        logger.warning(
            f"the pass {graph.name} runs without {way} from now on, slower and as exact: {cause}"
        )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory does not suffice: PyTorch, Triton, CUDA or cuBLAS say so, of this error or of its cause."""
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError) or any(
            words in str(error) for words in _OUT_OF_MEMORY
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def _lost(name: str, error: BaseException) -> AggdecError:
    return AggdecError(
        f"the GPU failed in the pass {name} ({error}) and takes no more work from this process. Sentences that were "
        "written are right; decode the others in a new one, with AGGDEC_BACKEND=plain, which uses no CUDA graphs"
    )
