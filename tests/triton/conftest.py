"""Kernels under Triton's interpreter, for which it has to be asked before they are imported.

`tests/engine/test_triton.py` starts the process that collects these files, and another one that compiles.
"""

import os
from typing import Any

import numpy as np
import pytest

collect_ignore_glob = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["test_*.py"]


@pytest.fixture(autouse=True)
def numbers_of_triton_3_6(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its interpreter asks for a number by `int(array)`, which NumPy 2.4 refuses."""
    import triton
    from triton.runtime import interpreter

    patch_tensor = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    if triton.__version__ == "3.6.0":
        monkeypatch.setattr(interpreter, "_patch_lang_tensor", patched)


@pytest.fixture(autouse=True)
def small_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of a small product has as many outputs as one of a large product; one of a choice has few symbols."""
    from fairseq_aggdec.engine.cuda import choice, layers

    monkeypatch.setattr(layers, "_PROGRAMS", 1)
    monkeypatch.setattr(choice, "_CHUNKS", (64, 64))


@pytest.fixture
def products_as_on_tensor_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """All entries of a product are added up in one order; NumPy's order depends on where an entry stands."""

    def matmul(a: Any, b: Any, dtype: Any) -> Any:
        pairs = np.multiply(
            a[..., :, None, :],
            np.swapaxes(b, -1, -2)[..., None, :, :],
            dtype=dtype,
            order="C",
        )
        return pairs.sum(axis=-1)

    monkeypatch.setattr(np, "matmul", matmul)  # the interpreter's `tl.dot`
