"""Tests of `fairseq_aggdec.engine.layers`."""

import pytest
import torch
from fairseq.modules import LearnedPositionalEmbedding, PositionalEmbedding

from fairseq_aggdec.engine.layers import (
    Positions,
    attend,
    attend_in_products,
)
from fairseq_aggdec.models.masks_and_positions import additive_mask

PAD = 1


@pytest.mark.parametrize("heads", [1, 2, 16])
@pytest.mark.parametrize("rows", [1, 16])
@pytest.mark.parametrize("per_row", [False, True])
def test_attention_in_products_leaves_the_mask_to_its_owner(heads: int, rows: int, per_row: bool) -> None:
    """The decoder keeps its causal mask for all later blocks: scores that are written into it spoil them all."""
    torch.manual_seed(3)
    width, length = 4, 7
    query = torch.randn(rows, heads, width, 8)
    keys, values = torch.randn(2, rows, heads, length, 8)
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)[-width:]
    mask = additive_mask(hidden.expand(rows, 1, width, length) if per_row else hidden, query)
    before = mask.clone()
    attended = attend_in_products(query, keys, values, mask)
    assert torch.equal(mask, before)
    torch.testing.assert_close(attended, attend(query, keys, values, mask), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("learned", [True, False])
def test_positions_are_those_of_a_sentence(learned: bool) -> None:
    module = PositionalEmbedding(20, 6, PAD, learned=learned)
    positions = Positions(module, torch.empty(1))
    expected = module(torch.full((1, 20), PAD + 1))[0]  # 20 x D
    torch.testing.assert_close(positions.span(3, 11), expected[3:11])
    wanted = torch.tensor([[4, 0], [19, 7]])
    torch.testing.assert_close(positions.look_up(wanted, 20), expected[wanted])


def test_sinusoidal_positions_go_on_for_ever_and_learned_ones_are_clamped() -> None:
    sinusoidal = PositionalEmbedding(8, 6, PAD, learned=False)
    expected = sinusoidal(torch.full((1, 70), PAD + 1))[0]
    positions = Positions(PositionalEmbedding(8, 6, PAD, learned=False), torch.empty(1))
    torch.testing.assert_close(positions.span(60, 70), expected[60:])
    torch.testing.assert_close(positions.look_up(torch.tensor([69]), 70), expected[69:])
    learned = LearnedPositionalEmbedding(8, 6, PAD)
    clamped = Positions(learned, torch.empty(1)).span(4, 12)
    rows = learned.weight.size(0) - PAD - 1
    torch.testing.assert_close(clamped[-1], learned.weight[-1])
    torch.testing.assert_close(clamped[: rows - 4], learned.weight[PAD + 5 :])
