"""What passes and drafts cost, estimated from the sizes of models."""

import pytest
from torch import nn

from fairseq_aggdec.engine.native import products
from fairseq_aggdec.scheduling import costs
from fairseq_aggdec.scheduling.costs import (
    KERNELS,
    KERNELS_16_BITS,
    PYTORCH,
    Costs,
    DraftCost,
    Processor,
)


def decoder(layers: int, width: int) -> nn.Module:
    """A decoder of so many layers with `width` x `width` weights each, and a projection to 1000 symbols."""
    module = nn.Module()
    module.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
    module.output_projection = nn.Linear(width, 1000, bias=False)
    return module


LARGE = decoder(6, 256)


def test_tokens_are_free_while_weights_are_read() -> None:
    """From memory more than from the caches, and fewer where these have 16 bits."""
    huge = decoder(2, 2048)
    wide = Costs.of([huge], KERNELS)
    narrow = Costs.of([huge], KERNELS_16_BITS)
    assert wide.free > narrow.free > Costs.of([LARGE], KERNELS).free > 1
    # copying takes time
    assert wide.iteration(1, 0) < wide.iteration(1, 1) == wide.iteration(1, 4)
    assert wide.iteration(1, 4) < wide.iteration(1, 20) == wide.iteration(1, 19) + 1


@pytest.mark.parametrize("cpu", [PYTORCH, KERNELS])
def test_what_a_drafter_costs_in_tokens_of_its_verifier(cpu: Processor) -> None:
    same = DraftCost.of(LARGE, 5, [LARGE], cpu)
    smaller = DraftCost.of(decoder(2, 64), 5, [LARGE], cpu)
    of_two = DraftCost.of(LARGE, 5, [LARGE, LARGE], cpu)
    assert same.token == 1
    for name in ("call", "token", "read"):
        cost = getattr(same, name)
        assert getattr(smaller, name) < cost == pytest.approx(2 * getattr(of_two, name))
    in_steps = DraftCost.of(LARGE, 5, [LARGE], cpu, steps=True)
    assert in_steps.whole(2, 5) == 5 * in_steps.whole(2, 1)


def test_kernels_and_schedules_agree_which_models_are_read_from_memory() -> None:
    assert products._WEIGHTS_IN_CACHE == costs._WEIGHTS_IN_CACHE
