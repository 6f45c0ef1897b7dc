"""Rows whose drafts fail again and again wait before they get another one.

An output that has lost its source, as of a model that repeats itself, keeps finding a place in the source and never
goes on with it. Averages over all rows hardly notice; alone at the end of its batch, such a row pays for a useless
draft with every token.
"""

from collections.abc import Sequence

_TRIES = 3
"""failures in a row that say nothing yet: around an edit they are usual"""
_LONGEST_WAIT = 16


class Patience:
    """Of one batch: after the third failure in a row one step without a draft, after each further one twice as many."""

    def __init__(self, rows: int) -> None:
        """
        Args:
            rows: B.
        """
        self._failures = [0] * rows
        self._waits = [0] * rows

    def waiting(self, rows: Sequence[int]) -> list[bool]:
        """Whether each of these rows gets no draft now; asked once a step.

        Args:
            rows: numbers below B.
        """
        waiting = [self._waits[row] > 0 for row in rows]
        for row in rows:
            self._waits[row] -= self._waits[row] > 0
        return waiting

    def learn(self, rows: Sequence[int], drafted: Sequence[int], accepted: Sequence[int]) -> None:
        """Take in how many tokens of each row's draft were verified and how many passed."""
        for row, length, passed in zip(rows, drafted, accepted, strict=True):
            if passed > 0:
                self._failures[row] = 0
            elif length > 0:
                self._failures[row] += 1
                beyond = self._failures[row] - _TRIES
                self._waits[row] = min(1 << beyond, _LONGEST_WAIT) if beyond >= 0 else 0
