"""An experiment's `prepare.py`: how its text is scored, and the function that makes its data.

EXPERIMENT = Experiment(sides=("src", "tgt"), score=("gleu",))

def prepare(steps: Steps) -> None: ...
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from types import ModuleType

from fairseq_aggdec.errors import AggdecError


@dataclass(frozen=True)
class TestSet:
    """A test set beside `valid` and `test`, for evaluation alone."""

    __test__ = False  # no test class, for pytest

    name: str
    has_references: bool = True
    """False where its corrections are not published"""


@dataclass(frozen=True)
class Experiment:
    """The names of an experiment's files, and how outputs are scored."""

    sides: tuple[str, str]
    """source and target: the suffixes of all files"""
    score: tuple[str, ...] = ()
    """metrics of `aggdec score`; none where the data are images"""
    languages: Mapping[str, str] = field(default_factory=dict)
    """{side: language of its running text}; empty where the text is tokenised already"""
    training_sets: tuple[str, ...] = ("train",)
    """fairseq trains on `train`, `train1`, ... by default, and on another set under `--train-subset NAME`"""
    test_sets: tuple[TestSet, ...] = ()
    """fairseq's `test1`, `test2`, ..."""
    m2: Mapping[str, str] = field(default_factory=dict)
    """{valid or test: file of gold edits, below the folder of the data sets}"""
    gpt2: bool = False
    """whether the subwords are those of GPT-2"""

    @property
    def splits(self) -> list[str]:
        """The names of all splits and test sets, the training sets first."""
        return [
            *self.training_sets,
            "valid",
            "test",
            *(item.name for item in self.test_sets),
        ]

    def language_of(self, side: str) -> str | None:
        """The language of a side's running text; a reference has the target's. None: it is tokenised already."""
        return self.languages.get(side, self.languages.get(self.sides[1]))


def read_experiment(file: Path) -> tuple[Experiment, ModuleType]:
    """The `EXPERIMENT` of a `prepare.py`, and the imported file.

    Raises:
        AggdecError: there is no such file, or it has no `EXPERIMENT`.
    """
    module = load_module(file)
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment):
        raise AggdecError(
            f"{file}: has no EXPERIMENT = Experiment(...); compare with the files in configs/"
        )
    return experiment, module


def load_module(file: Path) -> ModuleType:
    """Import a Python file of an experiment's folder, again where it was imported.

    The folder is a package of its own, so that `from .errors import Corruptor` works in every checkout.

    Raises:
        AggdecError: it does not exist, or is no Python.
    """
    if not file.is_file() or file.suffix != ".py":
        raise AggdecError(
            f"{file}: no such Python file; give an experiment's, such as configs/gec_small/prepare.py"
        )
    folder = str(file.absolute().parent)
    package = f"_experiment_{sha1(folder.encode()).hexdigest()[:12]}"
    if package not in sys.modules:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [folder]
    sys.modules.pop(f"{package}.{file.stem}", None)  # it may have changed
    importlib.invalidate_caches()
    return importlib.import_module(f"{package}.{file.stem}")
