"""How many drafted tokens are worth verifying, where a wider block costs more.

One row's block costs a CPU little more than one token, since the weights have to be read anyway. Many rows make the
arithmetic bind: then every drafted token that is not accepted costs as much as one that is, and beyond some width (for
a batch that is large enough: from the first token on) a draft loses more than it saves. What is accepted never depends
on it, only when.
"""

from collections.abc import Sequence

_MEMORY = 400
"""drafted tokens after which older ones count half"""


class DraftWidth:
    """Chooses widths by the tokens that they promise a second, learning how often drafted tokens pass.

    A drafted token is taken to pass, where those before it did, with the same probability everywhere; a block to cost
    as much as so many rows and its own.
    """

    def __init__(self, free_rows: int, drafter_share: float = 0.0, acceptance: float = 0.7) -> None:
        """
        Args:
            free_rows: rows of a block that cost as much as reading the weights and all that is paid once a block.
            drafter_share: the drafter's cost of a row in the verifier's; 0 for drafts that cost nothing.
            acceptance: the probability to begin with.
        """
        self._free_rows = free_rows
        self._drafter_share = drafter_share
        self._accepted, self._tried = 10 * acceptance, 10.0

    def choose(self, rows: int, longest: int, lengths: Sequence[int] | None = None) -> int:
        """The best longest draft for the next block, 0 for none.

        Args:
            rows: B.
            longest: the longest draft that there can be.
            lengths: of each row's draft, where there are drafts already; otherwise all are as long as asked for.
        """
        acceptance = self._accepted / self._tried
        fixed = self._free_rows + rows
        best_width, best_rate = 0, rows / fixed
        tokens, passes = float(rows), 1.0  # committed in all; probability that a draft passes as far as here
        for width in range(1, longest + 1):
            passes *= acceptance
            drafting = rows if lengths is None else sum(length >= width for length in lengths)
            tokens += drafting * passes
            # the drafter reads what was committed since its last draft, and the masks
            drafter_rows = self._free_rows + tokens + rows * width
            rate = tokens / (fixed + rows * width + self._drafter_share * drafter_rows)
            if rate > best_rate:
                best_width, best_rate = width, rate
        return best_width

    def learn(self, drafted: Sequence[int], accepted: Sequence[int]) -> None:
        """Take in how many tokens of each row's draft passed."""
        for length, passed in zip(drafted, accepted, strict=True):
            self._accepted += passed
            self._tried += min(passed + 1, length)
        if self._tried > _MEMORY:
            self._accepted, self._tried = self._accepted / 2, self._tried / 2
