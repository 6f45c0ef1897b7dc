"""Work in several processes is over when one of them cannot go on."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from fairseq_aggdec.data.workers import in_processes
from fairseq_aggdec.errors import AggdecError


def test_a_worker_that_cannot_begin_or_dies_ends_the_work() -> None:
    def refuse() -> Callable[[int], int]:
        raise AggdecError("codes: No such file")

    def die() -> Callable[[int], int]:
        os._exit(9)

    with pytest.raises(AggdecError, match="codes: No such file"):
        list(in_processes(refuse, range(9), 2))
    with pytest.raises(AggdecError, match=r"a worker process died .*; try fewer --workers"):
        list(in_processes(die, range(9), 2))
