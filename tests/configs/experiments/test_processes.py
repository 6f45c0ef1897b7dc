"""Work in several processes comes in order, and is over when one of them cannot go on."""

import os

from experiments.processes import in_processes

from fairseq_aggdec.errors import AggdecError
from tests.support.helpers import refused_with


def test_results_come_in_order_from_processes_of_their_own() -> None:
    processes, squares = zip(
        *in_processes(lambda item: (os.getpid(), item * item), range(50), 2),
        strict=True,
    )
    assert list(squares) == [number * number for number in range(50)]
    assert os.getpid() not in processes


def test_a_worker_that_fails_or_dies_ends_the_work() -> None:
    def refuse(item: int) -> int:
        raise AggdecError("line 3: is no text")

    def die(item: int) -> int:
        os._exit(9)

    with refused_with("line 3: is no text"):
        list(in_processes(refuse, range(9), 2))
    with refused_with(r"a worker process died .*; try fewer --workers"):
        list(in_processes(die, range(9), 2))
