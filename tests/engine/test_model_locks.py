"""Threads that want the same models."""

from threading import Thread

from torch import nn

from fairseq_aggdec.engine.model_locks import alone_with

MODELS: list[nn.Module] = [nn.Identity(), nn.Identity()]


def take(models: list[nn.Module]) -> None:
    for _ in range(3000):
        with alone_with(models), alone_with(models[:1]):
            pass


def test_ensembles_in_another_order_do_not_wait_for_each_other() -> None:
    both = [Thread(target=take, args=(models,), daemon=True) for models in (MODELS, MODELS[::-1])]
    for one in both:
        one.start()
    for one in both:
        one.join(30)
        assert not one.is_alive()
