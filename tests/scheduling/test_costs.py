"""What passes and drafts are taken to cost, from the sizes of models."""

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


class Sized(nn.Module):
    """A decoder of so many layers with `width` x `width` weights each, and a projection to 1000 symbols."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.output_projection = nn.Linear(width, 1000, bias=False)
        self.output_projection.weight = self.embed_tokens.weight


SMALL, LARGE = Sized(2, 64), Sized(6, 256)


def test_tokens_are_free_while_weights_are_read() -> None:
    """From memory more than from the caches, and fewer where these have 16 bits."""
    huge = Sized(2, 2048)
    wide, narrow, small = (
        Costs.of([one], cpu)
        for one, cpu in ((huge, KERNELS), (huge, KERNELS_16_BITS), (LARGE, KERNELS))
    )
    assert wide.free > narrow.free > small.free > 1
    # copying takes time
    assert wide.iteration(1, 0) < wide.iteration(1, 1) == wide.iteration(1, 4)
    assert wide.iteration(1, 4) < wide.iteration(1, 20) == wide.iteration(1, 19) + 1


@pytest.mark.parametrize("cpu", [PYTORCH, KERNELS])
def test_what_a_drafter_costs_in_tokens_of_its_verifier(cpu: Processor) -> None:
    like_it, smaller, of_two = (
        DraftCost.of(drafter, 5, verifiers, cpu)
        for drafter, verifiers in (
            (LARGE, [LARGE]),
            (SMALL, [LARGE]),
            (LARGE, [LARGE, LARGE]),
        )
    )
    assert like_it.token == 1
    for name in ("call", "token", "read"):
        assert (
            getattr(smaller, name)
            < getattr(like_it, name)
            == pytest.approx(2 * getattr(of_two, name))
        )
    in_steps = DraftCost.of(LARGE, 5, [LARGE], cpu, steps=True)
    assert in_steps.whole(2, 5) == 5 * in_steps.whole(2, 1)


def test_the_kernels_and_the_schedules_take_models_from_one_size_on_to_be_read_from_memory() -> (
    None
):
    assert products._WEIGHTS_IN_CACHE == costs._WEIGHTS_IN_CACHE
