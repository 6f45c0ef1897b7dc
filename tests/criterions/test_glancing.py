"""Schedule, number and choice of revealed positions, counted acceptance."""

import pytest
import torch

from fairseq_aggdec.criterions.glancing import GlancingSchedule, revealed_positions, uniform_noise
from fairseq_aggdec.errors import AggdecError


def test_schedule_of_the_papers() -> None:
    """0.5, 0.4 and 0.3 at the start, in the middle and at the end."""
    schedule = GlancingSchedule.parse("0.5:0.3", 1000)
    assert [schedule.ratio(update) for update in (0, 500, 1000, 5000)] == pytest.approx([0.5, 0.4, 0.3, 0.3])
    assert not schedule.is_off


@pytest.mark.parametrize("text", ["half", "1.5", "0.5:0.3:0.1"])
def test_refused(text: str) -> None:
    with pytest.raises(AggdecError, match="--glancing"):
        GlancingSchedule.parse(text, 100)


def test_choice_is_uniform_among_valid_positions() -> None:
    """Two of five positions with a target, of seven: each with probability 2/5, each pair alike; right ones too."""
    torch.manual_seed(1)
    times = 20000
    targets = torch.zeros(times, 1, 7, dtype=torch.long)
    predicted = torch.ones_like(targets)
    predicted[..., 0] = 0  # right, and revealed as often as the others
    valid = (torch.arange(7) < 5).expand(times, 1, 7)
    revealed = revealed_positions(predicted, targets, valid, uniform_noise(targets), 0.5)[:, 0]
    assert (revealed[:, :5].float().mean(dim=0) - 0.4).abs().max() < 0.02
    assert not bool(revealed[:, 5:].any())
    pairs = (revealed[:, :5].long() * 2 ** torch.arange(5)).sum(dim=1).bincount()
    assert (pairs > 0).sum() == 10
    assert (pairs[pairs > 0] / times - 0.1).abs().max() < 0.02
