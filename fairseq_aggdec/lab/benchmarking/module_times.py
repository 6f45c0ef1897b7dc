"""Measures the time of each module while a mode decodes (papers/000 Table 15)."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.heads import HeadDrafter
from fairseq_aggdec.decoding.drafters.input_guided import SourceCopyDrafter
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter

MODULES: dict[str, Sequence[tuple[type, str]]] = {
    "verifier's encoder": [(Engines, "encode")],
    "verifier's decoder": [(BlockDecoder, name) for name in ("start", "features", "project")],
    "drafter's encoder": [(LoadedDrafter, "start")],
    "drafter": [
        *((kind, "propose") for kind in (BlockDrafter, SourceCopyDrafter, HeadDrafter)),
        (DraftDecoder, "score"),  # by itself in `nar`
    ],
}
"""the methods that are timed, by the name of the module; a call within a timed call counts for the outer one"""
REST = "rest"


@contextmanager
def measured(synchronise: Callable[[], None] | None = None) -> Iterator[dict[str, float]]:
    """Seconds spent in each of `MODULES` during the context; the dictionary fills up while it lasts.

    Args:
        synchronise: waits for the device; called before each reading of the clock.
    """
    seconds: dict[str, float] = defaultdict(float)
    running: list[str] = []

    def timed(module: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if running:
                return function(*args, **kwargs)
            running.append(module)
            began = _now(synchronise)
            try:
                return function(*args, **kwargs)
            finally:
                seconds[module] += _now(synchronise) - began
                running.pop()

        return call

    with ExitStack() as stack:
        for module, methods in MODULES.items():
            for owner, name in methods:
                stack.enter_context(mock.patch.object(owner, name, timed(module, getattr(owner, name))))
        yield seconds


def with_rest(seconds: dict[str, float], total: float) -> dict[str, float]:
    """Seconds of each module that was called, and `REST`: what they leave of `total` seconds."""
    return {module: seconds[module] for module in MODULES if module in seconds} | {REST: total - sum(seconds.values())}


def _now(synchronise: Callable[[], None] | None) -> float:
    if synchronise is not None:
        synchronise()
    return time.perf_counter()


def device_wait(models: Sequence[torch.nn.Module]) -> Callable[[], None]:
    """A function that waits until the device of the models has finished its work."""
    return torch.cuda.synchronize if next(models[0].parameters()).is_cuda else lambda: None
