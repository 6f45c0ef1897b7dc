"""Glancing: the worse a drafter's first draft, the more of the reference it sees in training (papers/000 §3.2.1).

A first pass without gradients drafts every block. In a block with H wrong tokens N = floor(lambda * H) positions, drawn
uniformly among those with a target, then show the reference's token in place of the mask; the second pass is trained on
the other positions.
"""

import re
from dataclasses import dataclass

from torch import Tensor

from fairseq_aggdec.errors import AggdecError


@dataclass(frozen=True)
class GlancingSchedule:
    """lambda, linear from `start` to `end` over `updates` updates, constant afterwards."""

    start: float
    end: float
    updates: int

    @classmethod
    def parse(cls, text: str, updates: int) -> "GlancingSchedule":
        """Parse the value of --glancing: `START:END`, or one number for a constant; 0 switches glancing off.

        Raises `AggdecError` where lambda is not from 0 to 1, or changes over an unknown number of updates.
        """
        match = re.fullmatch(r"(\d*\.?\d+)(?::(\d*\.?\d+))?", text.strip())
        start, end = (float(match[1]), float(match[2] or match[1])) if match else (-1.0, -1.0)
        if not (0 <= start <= 1 and 0 <= end <= 1):
            raise AggdecError(f"--glancing {text}: give lambda from 0 to 1, or START:END such as 0.5:0.3")
        if start != end and updates <= 0:
            raise AggdecError(
                f"--glancing {text} changes over the training, whose length is unknown: "
                "give --max-update or --glancing-updates"
            )
        return cls(start, end, updates)

    def ratio(self, update: int) -> float:
        """Lambda at an update, counted from 0."""
        if self.start == self.end:
            return self.start
        return self.start + (self.end - self.start) * min(1.0, update / self.updates)

    @property
    def is_off(self) -> bool:
        """Whether lambda is always 0, so that the first pass is not needed."""
        return self.start == self.end == 0


def revealed_positions(predicted: Tensor, targets: Tensor, valid: Tensor, noise: Tensor, ratio: float) -> Tensor:
    """The positions that show the reference's token in the second pass: floor(`ratio` * Hamming distance) in a block.

    `predicted` and `targets`: tokens; `valid`: whether there is a target; `noise`: random numbers that order positions.
    All have the shape of the result, B x R x k.
    """
    distance = (predicted.ne(targets) & valid).sum(-1, keepdim=True)  # B x R x 1
    count = (distance * ratio).floor()
    order = noise.masked_fill(~valid, 2.0).argsort(dim=-1)
    rank = order.argsort(dim=-1)  # B x R x k, rank in the random order; positions without a target come last
    return rank < count
