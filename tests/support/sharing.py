"""What takes long to make is made once, whichever of pytest-xdist's processes needs it first."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from filelock import FileLock

Made = TypeVar("Made")


def made_once(
    tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]
) -> Made:
    """What `make` returns for an empty folder that belongs to this run of the tests; the others wait for it."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # each process has a folder of its own there
    folder = root / name
    record = root / f"{name}.pickle"
    with FileLock(root / f"{name}.lock"):
        if not record.exists():
            folder.mkdir(exist_ok=True)
            record.write_bytes(pickle.dumps(make(folder)))
        made: Made = pickle.loads(record.read_bytes())
    return made
