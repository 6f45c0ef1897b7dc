"""Importing fairseq sooner, in the process of a command."""

import gc
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_LATER = ("sklearn", "sklearn.metrics", "scipy.stats")
"""imported by a task and a criterion of fairseq for their metrics: of a classifier of sounds, and of sentences"""


class _Later(ModuleType):
    """A module, or a function of one, that is imported when it is called."""

    def __getattr__(self, name: str) -> "_Later":
        if name.startswith("__"):
            raise AttributeError(name)
        return _Later(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **options: Any) -> Any:
        return pkgutil.resolve_name(self.__name__)(*args, **options)


@contextmanager
def quick_imports() -> Iterator[None]:
    """Within the block fairseq is imported without scikit-learn and SciPy, and Python's collector finds no garbage.

    What fairseq takes from those two is imported when it is called. Both together save a third of a command's start.
    Where fairseq has been imported before, nothing is changed. No other thread may import these modules meanwhile.
    """
    if "fairseq" in sys.modules:
        yield
        return
    later = {name: _Later(name) for name in _LATER if name not in sys.modules}
    sys.modules.update(later)
    gc.disable()
    try:
        # of fairseq's code, when Python compiles it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            yield
    finally:
        for name in later:
            del sys.modules[name]
        # modules stay: the collector need not look at them again, nor at the end
        gc.freeze()
        gc.enable()
