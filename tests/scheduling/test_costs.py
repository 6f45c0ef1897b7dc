"""What blocks and drafts are taken to cost, from the sizes of models."""

import pytest
from torch import nn

from fairseq_aggdec.engine.native import products
from fairseq_aggdec.scheduling import costs
from fairseq_aggdec.scheduling.costs import KERNELS, KERNELS_16_BITS, PYTORCH, Costs, DraftCost, Processor


class Sized(nn.Module):
    """A decoder of so many layers with `width` x `width` weights each, and a projection to 1000 symbols."""

    def __init__(self, layers: int, width: int, is_causal: bool = True) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.output_projection = nn.Linear(width, 1000, bias=False)
        self.output_projection.weight = self.embed_tokens.weight
        self.is_causal = is_causal


SMALL, LARGE = Sized(2, 64), Sized(6, 256)


@pytest.mark.parametrize("cpu", [PYTORCH, KERNELS])
def test_the_larger_the_model_the_fewer_rows_cost_as_much_as_a_call_on_a_cpu(cpu: Processor) -> None:
    small, large, two = (Costs.of(verifiers, cpu) for verifiers in ([SMALL], [LARGE], [LARGE, LARGE]))
    assert small.least > large.least > 1
    assert small.wide > large.wide > 0
    assert (two.least, two.wide) == pytest.approx((large.least, large.wide))


def test_rows_are_free_while_weights_are_read_from_memory() -> None:
    """Fewer where these have 16 bits; a model that fits into the caches is not read from memory."""
    huge = Sized(2, 2048)
    wide, narrow, small = (
        Costs.of([one], cpu) for one, cpu in ((huge, KERNELS), (huge, KERNELS_16_BITS), (LARGE, KERNELS))
    )
    assert wide.read > narrow.read > 4 > small.read == 0
    assert wide.rows(1) == wide.rows(wide.read) < wide.rows(wide.read + 1) == wide.rows(1) + 1


@pytest.mark.parametrize("cpu", [PYTORCH, KERNELS])
def test_what_a_drafter_costs_in_rows_of_its_verifier(cpu: Processor) -> None:
    like_it, smaller, of_two = (
        DraftCost.of(drafter, 5, verifiers, cpu)
        for drafter, verifiers in ((LARGE, [LARGE]), (SMALL, [LARGE]), (LARGE, [LARGE, LARGE]))
    )
    assert like_it.block_size == 5
    assert like_it.token >= 1 > like_it.unread > 0  # what is only read is not projected
    for name in ("call", "token", "unread", "start"):
        assert getattr(smaller, name) < getattr(like_it, name) == pytest.approx(2 * getattr(of_two, name))
    assert not like_it.rereads
    assert DraftCost.of(Sized(6, 256, is_causal=False), 5, [LARGE], cpu).rereads
    in_steps = DraftCost.of(LARGE, 5, [LARGE], cpu, steps=True)
    assert in_steps.whole(2, 5, 9) == 5 * in_steps.whole(2, 1, 0) > like_it.whole(2, 5, 9)


def test_the_kernels_and_the_schedules_take_models_from_one_size_on_to_be_read_from_memory() -> None:
    assert products._WEIGHTS_IN_CACHE == costs._WEIGHTS_IN_CACHE
