"""Threads, ensembles and processes that want the same models."""

import os
import signal
from threading import Thread

from torch import nn

from fairseq_aggdec.compat.model_locks import alone_with

MODELS: list[nn.Module] = [nn.Identity(), nn.Identity()]


def take(models: list[nn.Module], times: int = 1) -> None:
    for _ in range(times):
        with alone_with(models), alone_with(models[:1]):
            pass


def test_ensembles_in_another_order_do_not_wait_for_each_other() -> None:
    both = [
        Thread(target=take, args=(models, 3000), daemon=True)
        for models in (MODELS, MODELS[::-1])
    ]
    for one in both:
        one.start()
    for one in both:
        one.join(30)
        assert not one.is_alive()


def test_a_model_that_another_thread_holds_is_free_in_a_new_process() -> None:
    statuses = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            signal.alarm(30)  # ends a process that waits
            take(MODELS)
            os._exit(0)
        statuses.append(os.waitpid(child, 0)[1])

    with alone_with(MODELS):
        other = Thread(target=fork)
        other.start()
        other.join()
    assert statuses == [0]
