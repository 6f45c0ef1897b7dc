"""How far a command is, on stderr: a bar on a terminal, elsewhere a line every ten seconds."""

import sys
from typing import Any

from tqdm import tqdm

_SECONDS = 10


class Progress(tqdm):
    """tqdm's bar, which is a plain line each time where stderr is no terminal, such as in a log."""

    def __init__(
        self, total: int | None, unit: str = " outputs", initial: int = 0
    ) -> None:
        self._is_bar = sys.stderr.isatty()
        wait = 0.1 if self._is_bar else _SECONDS
        super().__init__(
            total=total, unit=unit, initial=initial, leave=False, miniters=1, mininterval=wait, maxinterval=wait,
            delay=wait,
        )  # fmt: skip

    def display(self, msg: str | None = None, pos: int | None = None) -> Any:
        """Overrides tqdm's."""
        if self._is_bar:
            return super().display(msg, pos)
        if msg is None:  # else it is what clears the bar at the end
            print(self, file=sys.stderr, flush=True)
