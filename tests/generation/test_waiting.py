"""How often a batch waits for the device, and copies to it.

To read a tensor, the host waits until a GPU has computed all that was asked for, and then the GPU waits for the host.
So there is one such read in an iteration, whatever the batch: what the iteration has brought.
"""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.engine import choose_backend, weights_snapshot
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.plain import choice
from fairseq_aggdec.generation import beam_generator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from tests.support.random_models import random_batch, random_drafter
from tests.support.small_generators import FEW_WORDS, cached_model, generator

READING = "tolist item cpu numpy nonzero __bool__ __int__ __float__ __index__ __iter__".split()
"""methods of a tensor that wait for its values"""


class Read(torch.Tensor):
    """A tensor on the host, which is free to read; all others pass for the device's."""


def read(_: Any, *entries: Tensor) -> Any:
    """`choice.on_host` as from a GPU."""
    return torch.cat(entries).cpu().split([entry.size(0) for entry in entries])


class Waits(TorchFunctionMode):
    """Counts them, iteration by iteration, and the copies to the device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.counts: list[int] = []
        """of each iteration; the first has the batch's start in it"""
        self.before: list[int] = []
        """of what happens before an iteration's tokens are committed, or before a beam search"""
        self.copied: list[int] = []
        self.waits = self.copies = 0
        """since the last iteration, or the end of a beam search"""
        from_buffer = torch.frombuffer
        monkeypatch.setattr(
            torch,
            "frombuffer",
            lambda *given, **kind: from_buffer(*given, **kind).as_subclass(Read),
        )
        monkeypatch.setattr(Outputs, "commit", self._counted(Outputs.commit))
        monkeypatch.setattr(
            beam_generator,
            "plain_beam_search",
            self._counted(beam_generator.plain_beam_search),
        )

    def _counted(self, function: Any) -> Any:
        def counted(*args: Any) -> Any:
            self.before.append(self.waits)
            found = function(*args)
            self.counts.append(self.waits)
            self.copied.append(self.copies)
            self.waits = self.copies = 0
            return found

        return counted

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        found = func(*args, **kwargs)
        has_device = any(
            isinstance(given, torch.device) for given in (*args, *kwargs.values())
        )
        if has_device and (
            name == "tensor" or (name == "to" and isinstance(args[0], Read))
        ):
            self.copies += 1
            self.waits += not kwargs.get("non_blocking")
            return found.as_subclass(Tensor)
        self.waits += name in READING and not isinstance(args[0], Read)
        return found.as_subclass(Read) if name == "cpu" else found


def waits_of(decoding: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Of a batch for which the engines are there; passes run by PyTorch's operations, as if on a GPU."""
    model = cached_model("post-norm sinusoidal", 1)
    options: dict[str, Any] = {}
    if decoding != "aggressive-beam":
        options["drafts"] = "whole"
    if decoding == "gad":
        drafter = random_drafter("causal, post-norm sinusoidal", 2, FEW_WORDS, 3)
        options["block_draft"] = BlockDraftOptions(LoadedDrafter(drafter), 3)
    ours = generator([model], decoding, FEW_WORDS, max_len_b=200, **options)
    monkeypatch.setenv("AGGDEC_BACKEND", "plain")
    monkeypatch.setattr(choose_backend, "native_backend", lambda *_: None)
    for module in (choose_backend, weights_snapshot):
        monkeypatch.setattr(module, "runs_async", lambda device: True)
    monkeypatch.setattr(choice, "on_host", read)
    sample = random_batch(3, FEW_WORDS, [5 + row % 7 for row in range(rows)])
    ours.generate([model], sample)
    with torch.no_grad(), (waits := Waits(monkeypatch)):
        ours.generate([model], sample)
    return waits


@pytest.mark.parametrize("decoding", ["greedy", "iad", "gad"])
@pytest.mark.parametrize("rows", [3, 12])
def test_an_iteration_waits_once_whatever_the_batch(
    decoding: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first one the source is read, too, if it is copied."""
    counts = waits_of(decoding, rows, monkeypatch).counts
    assert counts[0] == 1 + (decoding == "iad")
    assert set(counts[1:]) == {1}


def test_nothing_waits_before_a_beam_search(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waits_of("aggressive-beam", 3, monkeypatch).before == [0]


@pytest.mark.parametrize(
    "decoding, weights",
    [("greedy", 2), ("iad", 2), ("gad", 4), ("aggressive-beam", 2)],
)
@pytest.mark.parametrize("rows", [1, 12])
def test_hypotheses_are_copied_to_the_device_at_once(
    decoding: str, weights: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind them, and not where a batch begins, a small weight of each encoder and decoder is looked at."""
    waits = waits_of(decoding, rows, monkeypatch)
    assert (waits.waits, waits.copies) == (weights, 2), "tokens, and numbers"
