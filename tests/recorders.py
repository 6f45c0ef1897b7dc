"""Recorders in place of CUDA graphs, where there is no GPU: they repeat what they saw, and nothing that Python did."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from fairseq_aggdec.decoding.acceptance import exact
from fairseq_aggdec.drafters import LoadedDrafter
from fairseq_aggdec.engine.cuda_graph import Capture, Replay, Results
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.precision import Arithmetic
from fairseq_aggdec.generator import AggressiveGenerator, BlockDraftOptions
from tests.random_models import random_batch, stock_beam_one
from tests.test_generator import JOINED, Hypothesis, Models, assert_same_up_to_near_ties, decode
from tests.test_generator_gad import cached_drafter

LONGEST: dict[str, Any] = {"max_len_b": 20}
AS_ON_A_GPU: dict[str, Any] = {"shorten_drafts": False}
ONE = ((4,), (40,), (0,))
SEVERAL = ((3, 7, 5), (9, 1, 0, 12, 4, 2, 7), (40, 2), (5,))
"""lengths of the sources: batches of other sizes, of other shapes, and rows that leave"""
ANY_DRAFTER = "causal, post-norm learned"


class Recorder(Capture):
    """Repeats functions as a graph does, results included: the same tensors, spoilt by whatever runs next."""

    def __init__(self, _: torch.device | None = None) -> None:
        self.recorded = 0
        self.repeated = 0
        self._results: list[Tensor] = []

    def __call__(self, function: Callable[[], Results]) -> Replay:
        self.recorded += 1
        run = self.record(function)
        fixed: list[Tensor] = []

        def replay() -> Results:
            self.repeated += 1
            results = run()
            for tensor in self._results:  # graphs share memory
                tensor.fill_(float("nan") if tensor.is_floating_point() else 0)
            if not fixed:
                fixed.extend(result.clone() for result in results)
                self._results += fixed
            for tensor, result in zip(fixed, results, strict=True):
                tensor.copy_(result)
            return tuple(fixed)

        return replay

    def record(self, function: Callable[[], Results]) -> Replay:
        return function

    def wait(self) -> None:
        pass


class _Operations(TorchDispatchMode):
    """Notes what is done to tensors, and with what: Python's own numbers as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Callable[..., Any], Any, Any, Any]] = []

    def __torch_dispatch__(
        self, function: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        assert function is not torch.ops.aten._local_scalar_dense.default, "a number is wanted on the host"
        results = function(*args, **(kwargs or {}))
        self.seen.append((function, args, kwargs or {}, results))
        return results


class Tracer(Recorder):
    """Lets a function run once, and from then on repeats the operations that were seen."""

    def record(self, function: Callable[[], Results]) -> Replay:
        with _Operations() as operations:
            traced = function()

        def replay() -> Results:
            now: dict[int, Tensor] = {}  # what was made this time, by what was made then

            def current(then: Any) -> Any:
                return tree_map_only(Tensor, lambda tensor: now.get(id(tensor), tensor), then)

            for operation, args, kwargs, results in operations.seen:
                made = operation(*current(args), **current(kwargs))
                now.update(zip(map(id, tree_leaves(results)), tree_leaves(made), strict=True))
            repeated: Results = current(traced)
            return repeated

        return replay


class Made:
    """Makes recorders and remembers them."""

    def __init__(self, kind: type[Recorder]) -> None:
        self.kind = kind
        self.recorders: list[Recorder] = []

    def __call__(self, device: torch.device) -> Recorder:
        assert device.type == "cpu"
        self.recorders.append(self.kind())
        return self.recorders[-1]

    @property
    def recorded(self) -> int:
        return sum(recorder.recorded for recorder in self.recorders)

    @property
    def repeated(self) -> int:
        return sum(recorder.repeated for recorder in self.recorders)


def decode_all(
    models: Models,
    capture: Callable[[torch.device], Capture] | None,
    batches: Sequence[Sequence[int]],
    decoding: str,
    drafter: str | None = None,
    arithmetic: Arithmetic | None = None,
    block_size: int = 6,
) -> list[list[Hypothesis]]:
    """Batch after batch, by one generator; as many sentences a batch as it has lengths."""
    engines = Engines(Arithmetic(capture=capture) if arithmetic is None else arithmetic)
    block = None
    if decoding in ("gad", "nar", "hybrid"):
        assert drafter is not None
        block = BlockDraftOptions(LoadedDrafter(cached_drafter(drafter, 1)), block_size, exact)
    elif decoding == "blockwise":
        block = BlockDraftOptions(None, 4, exact)
    generator = AggressiveGenerator(
        models, JOINED, src_dict=JOINED, engines=engines, decoding=decoding, block_draft=block, **AS_ON_A_GPU, **LONGEST
    )
    return [decode(generator, models, batch) for batch in samples(batches)]


def samples(batches: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    return [random_batch(number, JOINED, list(lengths)) for number, lengths in enumerate(batches)]


def check(models: Models, batches: Sequence[Sequence[int]], found: list[list[Hypothesis]]) -> None:
    for sample, mine in zip(samples(batches), found, strict=True):
        stock = stock_beam_one(models, JOINED, sample, **LONGEST)
        assert_same_up_to_near_ties(mine, stock, models, sample)
