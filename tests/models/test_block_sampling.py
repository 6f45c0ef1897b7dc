"""Which prefix lengths a batch's blocks have."""

import torch

from fairseq_aggdec.models.nar_drafter import fixed_prefix_lengths, random_prefix_lengths


def test_prefix_lengths_are_uniform_on_0_to_t_and_spread_within_a_sentence() -> None:
    torch.manual_seed(1)
    drawn = random_prefix_lengths(torch.full((20000,), 5), 3)  # 5 tokens with EOS, so 0 to 4
    for block in range(3):
        shares = drawn[:, block].bincount(minlength=5) / len(drawn)
        assert (shares - 0.2).abs().max() < 0.015
    lengths = torch.randint(4, 30, (500,))
    drawn = random_prefix_lengths(lengths, 4)
    assert bool((drawn < lengths[:, None]).all())
    assert bool((drawn.sort(dim=1).values.diff(dim=1) > 0).all())  # all different, as there is room
    short = random_prefix_lengths(torch.tensor([1, 2]), 4)
    assert short[0].tolist() == [0, 0, 0, 0]
    assert sorted(short[1].tolist()) == [0, 0, 1, 1]


def test_prefix_lengths_of_validation_depend_on_the_sentence_alone() -> None:
    ids, lengths = torch.arange(1000), torch.arange(1000) % 40 + 1
    all_at_once = fixed_prefix_lengths(ids, lengths, 4)
    some = torch.tensor([7, 998, 3])
    assert torch.equal(fixed_prefix_lengths(some, lengths[some], 4), all_at_once[some])
    eight = fixed_prefix_lengths(ids, torch.full((1000,), 8), 1).flatten().bincount(minlength=8)
    assert (eight / 1000 - 1 / 8).abs().max() < 0.01
