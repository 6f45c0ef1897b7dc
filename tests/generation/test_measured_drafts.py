"""Drafts by a model on a GPU are cut by the times of its graphs; captures and their clock are the test's."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch

from fairseq_aggdec.engine import choose_backend
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.graphs import graphs
from fairseq_aggdec.engine.graphs.graphs import Graphs
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.scheduling.measured import MeasuredGoodput
from tests.support.random_models import dictionary, model_of_shape, random_batch, random_drafter
from tests.support.small_generators import generator, tokens

WORDS = dictionary(12)


def captures(function: Callable[[], None]) -> Callable[[], None]:
    function()
    return function


def milliseconds(replay: Any) -> float:
    """A token of many rows has its price; a row alone pays for the pass, whatever its width."""
    kind, rows, width = replay.__self__.work
    return float(kind == "block") if rows == 1 else float(rows * width)


@pytest.mark.parametrize("drafter", ["block", "small"])
@pytest.mark.parametrize(("rows", "is_cut"), [(1, False), (12, True)])
def test_in_batches_drafts_that_fail_are_cut_and_alone_they_are_whole(
    drafter: str, rows: int, is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [model_of_shape("post-norm sinusoidal", 1, WORDS, WORDS, 0.1)]
    model: Any = random_drafter("causal, post-norm sinusoidal", 2, WORDS, WORDS, 6)
    if drafter == "small":
        model = model_of_shape("post-norm sinusoidal", 2, WORDS, WORDS, 0.1)
    sample, asked = random_batch(3, WORDS, [5 + row % 7 for row in range(rows)]), list[int]()
    monkeypatch.setenv("AGGDEC_BACKEND", "graphs")
    monkeypatch.setenv("AGGDEC_GPU", "costs")
    monkeypatch.setattr(choose_backend, "is_asynchronous", lambda device: True)
    monkeypatch.setattr(graphs, "milliseconds", milliseconds)
    monkeypatch.setattr(Graphs, "on", lambda device, drop: Graphs(torch.device("cpu"), lambda: captures))

    def limits(schedule: MeasuredGoodput, outputs: Any, own: Any = MeasuredGoodput.limits) -> list[int]:
        found: list[int] = own(schedule, outputs)
        asked.append(found[0])
        return found

    found = []
    for drafts in ("whole", "auto"):
        options = BlockDraftOptions(LoadedDrafter(model), 6)
        mode = "gad" if drafter == "block" else "speculative"
        ours = generator(models, mode, WORDS, block_draft=options, drafts=drafts, max_len_b=20)
        with mock.patch.object(MeasuredGoodput, "limits", limits):
            found.append([tokens(ours.generate(models, sample)) for _ in range(4)])
    assert found[0] == found[1]
    assert asked[0] == 6, "nothing has been measured"
    assert (asked[len(asked) // 2] < 6) == is_cut
