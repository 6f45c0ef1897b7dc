"""What blocks and drafts are taken to cost, from the sizes of models."""

import pytest
from torch import nn

from fairseq_aggdec.scheduling.costs import KERNELS, PYTORCH, DraftCost, Processor, of_pass


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
    small, large = of_pass([SMALL], cpu), of_pass([LARGE], cpu)
    assert small > large > (1, 0)
    assert of_pass([LARGE, LARGE], cpu)[:2] == pytest.approx(large[:2])
    least, wide, host = of_pass([SMALL], None)
    assert (least, wide, host) == of_pass([LARGE], None)
    assert least > 100 > wide


@pytest.mark.parametrize("cpu", [PYTORCH, KERNELS, None])
def test_what_a_drafter_costs_in_rows_of_its_verifier(cpu: Processor | None) -> None:
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
