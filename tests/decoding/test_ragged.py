"""Ragged rows: what is kept, and where it stands again when it is spread."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.roles import Ragged
from tests.scripted_decoding import examples


@examples(30)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_spreading_what_was_packed_gives_the_entries_and_repeats_the_last(widths: list[int]) -> None:
    ragged = Ragged.of(widths, torch.device("cpu"))
    matrix = torch.arange(len(widths) * max(widths) * 2).view(len(widths), max(widths), 2)
    packed = ragged.pack(matrix)
    assert packed.tolist() == [
        matrix[row, column].tolist() for row, wide in enumerate(widths) for column in range(wide)
    ]
    assert torch.equal(packed, matrix[ragged.rows, ragged.columns])
    assert ragged.size == sum(widths)
    spread = ragged.spread(packed)
    for row, wide in enumerate(widths):
        assert torch.equal(spread[row, :wide], matrix[row, :wide])
        assert torch.equal(spread[row, wide:], matrix[row, wide - 1].expand(max(widths) - wide, 2))
