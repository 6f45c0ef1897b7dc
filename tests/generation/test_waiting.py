"""How often the loop waits for the device.

To read a tensor, the host waits until a GPU has computed all that was asked for, and then the GPU waits for the host.
So there is one such read in an iteration, whatever the batch: what the iteration has brought.
"""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.tokens import Outcome
from fairseq_aggdec.engine import choose_backend
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.plain import choice
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.support.random_models import dictionary, model_of_shape, random_batch, random_drafter

READING = {"tolist", "item", "cpu", "numpy", "nonzero", "__bool__", "__int__", "__float__", "__index__", "__iter__"}
"""methods of a tensor that wait for its values"""
WORDS = dictionary(12)


class Read(torch.Tensor):
    """A tensor on the host, which is free to read; all others pass for the device's."""


def read(_: Any, *entries: Tensor) -> Any:
    """`choice.on_host` as from a GPU."""
    return torch.cat(entries).cpu().as_subclass(Read).split([entry.size(0) for entry in entries])


class Waits(TorchFunctionMode):
    """Counts them, iteration by iteration."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.counts: list[int] = []
        """of each iteration; the first has the batch's start in it"""
        self._count = 0
        commit = Outputs.commit

        def counted(outputs: Outputs, *args: Any) -> Outcome:
            outcome = commit(outputs, *args)
            self.counts.append(self._count)
            self._count = 0
            return outcome

        monkeypatch.setattr(Outputs, "commit", counted)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._count += getattr(func, "__name__", "") in READING and not isinstance(args[0], Read)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("decoding", ["greedy", "iad", "gad"])
@pytest.mark.parametrize("rows", [3, 12])
def test_an_iteration_waits_once_whatever_the_batch(decoding: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of_shape("post-norm sinusoidal", 1, WORDS, WORDS, 0.1)
    drafter = random_drafter("causal, post-norm sinusoidal", 2, WORDS, WORDS, 3) if decoding == "gad" else None
    block_draft = None if drafter is None else BlockDraftOptions(LoadedDrafter(drafter), 3)
    generator = AggressiveGenerator.of(
        [model], WORDS, src_dict=WORDS, decoding=decoding, block_draft=block_draft, drafts="whole"
    )
    monkeypatch.setenv("AGGDEC_BACKEND", "plain")
    monkeypatch.setattr(choose_backend, "native_backend", lambda *_: None)
    monkeypatch.setattr(choose_backend, "is_asynchronous", lambda device: True)
    monkeypatch.setattr(choice, "on_host", read)
    sample = random_batch(3, WORDS, [5 + row % 7 for row in range(rows)])
    with torch.no_grad(), (waits := Waits(monkeypatch)):
        generator.generate([model], sample)
    assert set(waits.counts[1:]) == {1}
