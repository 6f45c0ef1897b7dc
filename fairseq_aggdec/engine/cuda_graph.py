"""Recording what a function has a GPU do, to have it done again without asking for every operation anew.

A block of a few tokens costs a GPU less time than a processor needs to ask for its hundred and more operations. A CUDA
graph is asked for once. It reads and writes the very memory of the recording, and takes no decision that depends on
numbers: `fixed_steps` makes functions of that kind.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.errors import AggdecError

Results = tuple[Tensor, ...]
"""of a function that is recorded; the same tensors after every repetition, overwritten by the next"""
Replay = Callable[[], Results]


class Capture(Protocol):
    """Records functions."""

    def __call__(self, function: Callable[[], Results]) -> Replay:
        """Record a function.

        Args:
            function: of fixed tensors alone, all of which outlive the recording; running it twice is the same as once.
                It may have been run when this returns.

        Returns:
            what does the same to the same tensors.
        """

    def wait(self) -> None:
        """Until nothing is running that was recorded: before recordings are dropped."""


CaptureOn = Callable[[torch.device], Capture]
"""Makes the recorder of a decoder on a device."""


class CudaGraphs(Capture):
    """A `Capture` by CUDA graphs, all of one decoder in one pool of memory.

    What they compute in between shares memory, since they run one after the other. So may their results: they are to be
    read before another graph of the same decoder runs.
    """

    def __init__(self, device: torch.device) -> None:
        """
        Args:
            device: that of all tensors.

        Raises:
            AggdecError: it is no GPU.
        """
        if device.type != "cuda":
            raise AggdecError(
                f"--cuda-graphs needs a GPU, and the model is on {device.type}: leave it out, or do not use --cpu"
            )
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)

    def __call__(self, function: Callable[[], Results]) -> Replay:
        """See `Capture`.

        Raises:
            AggdecError: the device or its libraries refuse.
        """
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.device(self._device), torch.no_grad():
                # once before: libraries choose their functions and take their memory, which a recording must not
                current = torch.cuda.current_stream()
                self._stream.wait_stream(current)
                with torch.cuda.stream(self._stream):
                    function()
                current.wait_stream(self._stream)
                # other threads, such as those that pin batches, may go on with their own
                with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                    results = function()
        except RuntimeError as error:
            raise AggdecError(f"--cuda-graphs: recording a step failed: {error}. Leave it out") from error

        def replay() -> Results:
            graph.replay()
            return results

        return replay

    def wait(self) -> None:
        torch.cuda.synchronize(self._device)
