"""Measures the time of each module while a mode decodes (papers/000 Table 15).

A few methods are wrapped by a clock. PyTorch's profiler would not do: it records every operation, which takes longer
than many operations of small models, and it cannot divide the time of a CUDA graph among the modules.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any
from unittest import mock

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.heads import HeadDrafter
from fairseq_aggdec.decoding.drafters.input_guided import SourceCopyDrafter
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.runner import Eager
from fairseq_aggdec.lab.bench.rounds import ModeRunner, decode_once, warm_up

MODULES: dict[str, Sequence[tuple[type, str]]] = {
    "verifier's encoder": [(Engines, "encode")],
    "verifier's decoder": [(Decoder, "start"), (Eager, "features"), (Parts, "project")],
    "drafter's encoder": [(LoadedDrafter, "start")],
    "drafter": [
        *((kind, "propose") for kind in (BlockDrafter, SourceCopyDrafter, HeadDrafter)),
        (DraftDecoder, "choose"),  # by itself in `nar`
    ],
}
"""the methods that are timed, by the name of the module; a call within a timed call counts for the outer one"""


def profile(runner: ModeRunner) -> dict[str, float]:
    """Seconds by module of one round of a mode of this plugin, and the `rest`; reading the clocks adds a little."""
    warm_up(runner)
    seconds: dict[str, float] = defaultdict(float)
    is_running = False

    def timed(module: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal is_running
            if is_running:
                return function(*args, **kwargs)
            is_running = True
            runner.wait()
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                runner.wait()
                seconds[module] += time.perf_counter() - began
                is_running = False

        return call

    with ExitStack() as stack:
        for module, methods in MODULES.items():
            for owner, name in methods:
                stack.enter_context(
                    mock.patch.object(owner, name, timed(module, getattr(owner, name)))
                )
        result = decode_once(runner)
    seconds["rest"] = result.seconds - sum(seconds.values())
    return {
        module: round(seconds[module], 6)
        for module in (*MODULES, "rest")
        if module in seconds
    }
