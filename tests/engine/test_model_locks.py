"""Threads, ensembles and processes that want the same models."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

from torch import nn

from fairseq_aggdec.engine.model_locks import alone_with

MODELS: list[nn.Module] = [nn.Identity(), nn.Identity()]


def take(models: list[nn.Module], times: int = 1) -> None:
    for _ in range(times):
        with alone_with(models), alone_with(models[:1]):
            pass


def test_ensembles_in_another_order_do_not_wait_for_each_other() -> None:
    both = [Thread(target=take, args=(models, 3000), daemon=True) for models in (MODELS, MODELS[::-1])]
    for one in both:
        one.start()
    for one in both:
        one.join(30)
        assert not one.is_alive()


def in_a_new_process() -> int:
    """The exit status of a process that takes the models, which an alarm ends where it waits."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        take(MODELS)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def test_a_model_is_held_for_one_thread_and_is_free_in_a_new_process() -> None:
    other = Thread(target=take, args=(MODELS,), daemon=True)
    with ThreadPoolExecutor(1) as pool, alone_with(MODELS):
        other.start()
        assert pool.submit(in_a_new_process).result() == 0
        assert other.is_alive()
    other.join(30)
    assert not other.is_alive()
