"""An experiment's `prepare.py`: how its text is scored, and the function that makes its data.

    EXPERIMENT = Experiment(sides=("src", "tgt"), score=("gleu",))

    def prepare(steps: Steps) -> None: ...

The folder that holds the experiments is imported as a package, so that `from ..shared.data import wmt14` and
`from .errors import Corruptor` work in every checkout.
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

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class TestSet:
    """A test set beside `valid` and `test`, for evaluation alone."""

    __test__ = False  # no test class, for pytest

    name: str
    m2: str | None = None
    """file of its gold edits, below the folder of the data sets"""
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
        return [*self.training_sets, "valid", "test", *(item.name for item in self.test_sets)]

    def language_of(self, side: str) -> str | None:
        """The language of a side's running text; a reference has the target's. None: it is tokenised already."""
        return self.languages.get(side, self.languages.get(self.sides[1]))

    @classmethod
    def read(cls, file: Path) -> Experiment:
        """The `EXPERIMENT` of a `prepare.py`.

        Raises:
            AggdecError: there is no such file, or it has no `EXPERIMENT`.
        """
        return experiment_of(load_module(file), file)


def experiment_of(module: ModuleType, file: Path) -> Experiment:
    """The `EXPERIMENT` of an imported `prepare.py`; raises `AggdecError` where it has none."""
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment):
        raise AggdecError(f"{file}: has no EXPERIMENT = Experiment(...); compare with the files in configs/")
    return experiment


def load_module(file: Path) -> ModuleType:
    """Imports a Python file, or a folder with an `__init__.py`, of an experiment's folder, again where it was imported.

    Raises:
        AggdecError: it does not exist, or is no Python.
    """
    if not (file.is_file() and file.suffix == ".py") and not (file / "__init__.py").is_file():
        raise AggdecError(f"{file}: no such Python file; give an experiment's, such as configs/gec_small/prepare.py")
    folder = file.absolute().parent
    root = f"_experiments_{sha1(str(folder.parent).encode()).hexdigest()[:12]}"
    if root not in sys.modules:
        package = ModuleType(root)
        package.__path__ = [str(folder.parent)]
        sys.modules[root] = package
    if "." in folder.name:
        raise AggdecError(f"{folder}: the name of an experiment's folder must have no dot; rename it")
    name = f"{root}.{folder.name}.{file.stem}"
    if file.is_file():  # it may have changed
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
    return importlib.import_module(name)


def load_part(name: str) -> ModuleType:
    """Imports a part of this checkout's experiments, such as `gec_small/errors`.

    Raises:
        AggdecError: the plugin was installed without its checkout.
    """
    folder = CHECKOUT / "configs" / name
    if not folder.exists():
        raise AggdecError(f"{folder} does not exist: it comes with a checkout; install the plugin by pip install -e .")
    return load_module(folder)
