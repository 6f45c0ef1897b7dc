"""What may happen to a process that decodes on the device: nothing changes an output."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.graphs.runner import Graphs
from tests.support.on_device import LENGTHS, LIMIT, WIDE, batch, on
from tests.support.random_models import model_of_shape
from tests.support.small_generators import FEW_WORDS, generator, tokens

Outputs = list[list[list[list[int]]]]

pytestmark = pytest.mark.usefixtures("graphs")


@pytest.fixture
def model(device: torch.device) -> Any:
    return on(
        device,
        model_of_shape("pre-norm sinusoidal", 1, FEW_WORDS, 0.05, **WIDE),
    )


def outputs(model: Any, engines: Engines, device: torch.device) -> Outputs:
    """Of three batches."""
    ours = [
        generator([model], "iad", FEW_WORDS, drafts="whole", engines=engines, **LIMIT)
        for _ in LENGTHS
    ]
    batches = [batch(3, lengths, device) for lengths in LENGTHS]
    return [
        tokens(one.generate([model], sample))
        for one, sample in zip(ours, batches, strict=True)
    ]


@pytest.fixture
def expected(model: Any, device: torch.device) -> Outputs:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGGDEC_BACKEND", "plain")
        return outputs(model, Engines(), device)


def test_threads_with_engines_of_their_own_and_with_shared_ones(
    model: Any, device: torch.device, expected: Any
) -> None:
    shared = Engines()
    with ThreadPoolExecutor(3) as pool:
        found = pool.map(
            lambda number: outputs(model, shared if number % 2 else Engines(), device),
            range(6),
        )
        assert all(one == expected for one in found)


def test_a_model_that_moves_and_comes_back(
    model: Any, device: torch.device, expected: Any
) -> None:
    engines = Engines()
    for there in (device, torch.device("cpu"), device):
        assert outputs(model.to(there), engines, there) == expected


def test_few_graphs_are_kept(model: Any, device: torch.device, expected: Any) -> None:
    engines = Engines()
    engine = engines.decoder(model.decoder)
    assert engine is not None
    assert isinstance(engine.runner, Graphs)
    engine.runner.cache._most = 2
    assert outputs(model, engines, device) == expected
    assert len(engine.runner.cache._graphs) == 2
