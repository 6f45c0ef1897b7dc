"""A drafter that is made when it is first asked, for the rows that are left."""

from collections.abc import Sequence

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.deferred import DeferredDrafter
from fairseq_aggdec.decoding.loop import Drafter
from tests.scripted_decoding import examples


class RowsDrafter(Drafter):
    """Drafts the numbers that its rows have."""

    block_size: int | None = None

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers
        self.learned: list[list[int]] = []

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        return self.numbers[:, None], torch.ones_like(lengths)

    def unread(self, lengths_host: Sequence[int]) -> int:
        return 7

    def kinds(self) -> list[int]:
        return self.numbers.tolist()

    def learn(self, drafted: Sequence[int], accepted: Sequence[int]) -> None:
        self.learned.append([*drafted, *accepted])

    def keep(self, rows: Tensor) -> None:
        self.numbers = self.numbers[rows]


@examples(20)
@given(st.integers(0, 3), st.integers(0, 3), st.randoms(use_true_random=False))
def test_it_is_made_once_and_for_the_rows_that_are_left(before: int, after: int, rng) -> None:  # type: ignore[no-untyped-def]
    numbers, made = torch.arange(10, 18), []

    def make(rows: Tensor | None) -> RowsDrafter:
        made.append(RowsDrafter(numbers if rows is None else numbers[rows]))
        return made[-1]

    drafter, expected = DeferredDrafter(make, block_size=5), numbers
    for step in range(before + after):
        if step == before:
            drafter.block_size = 3
            lengths = torch.ones_like(expected)
            assert drafter.propose(lengths[:, None], lengths)[0].squeeze(1).tolist() == expected.tolist()
            assert made[0].block_size == 3
        kept = torch.tensor(rng.sample(range(len(expected)), rng.randint(1, len(expected))))
        drafter.keep(kept)
        expected = expected[kept]
        assert len(made) == (step >= before)
    lengths = torch.ones_like(expected)
    assert drafter.propose(lengths[:, None], lengths)[0].squeeze(1).tolist() == expected.tolist()
    assert len(made) == 1
    drafter.learn([2], [1])
    assert made[0].learned == [[2, 1]]
    assert drafter.kinds() == expected.tolist()


def test_before_it_is_made_all_is_unread_and_nothing_is_learnt() -> None:
    drafter = DeferredDrafter(lambda rows: RowsDrafter(torch.zeros(2)))
    drafter.learn([0, 0], [0, 0])
    assert drafter.kinds() is None
    assert drafter.unread([3, 5]) == 8
    lengths = torch.ones(2, dtype=torch.long)
    drafter.propose(lengths[:, None], lengths)
    assert drafter.unread([3, 40]) == 7
