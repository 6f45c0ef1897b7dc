"""Locks and settings of models: generators share a model without an engine, and fairseq's code has settings in it."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

_locks: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
os.register_at_fork(after_in_child=_locks.clear)  # a thread that held one is not there


@contextmanager
def alone_with(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Hold the locks of these modules within the block, which a thread may enter again."""
    locks = [_locks.setdefault(module, threading.RLock()) for module in modules]
    with ExitStack() as held:
        # in one order, or two ensembles might wait for each other
        for lock in sorted(locks, key=id):
            held.enter_context(lock)
        yield


@contextmanager
def with_setting(parts: Iterable[nn.Module], name: str, value: Any) -> Iterator[None]:
    """Within the block, the attribute `name` of all parts is `value`; afterwards it is as before in each part."""
    before = [(part, getattr(part, name)) for part in parts]
    for part, _ in before:
        setattr(part, name, value)
    try:
        yield
    finally:
        for part, value_before in before:
            setattr(part, name, value_before)
