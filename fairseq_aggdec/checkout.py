"""The experiments in configs/, which come with a checkout and not with the installed package."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from fairseq_aggdec.errors import AggdecError

CONFIGS = Path(__file__).parents[1] / "configs"


def load_part(name: str) -> ModuleType:
    """Import a module of configs/shared, such as `experiments.steps`.

    Raises:
        AggdecError: the plugin was installed without its checkout.
    """
    folder = CONFIGS / "shared"
    if not folder.is_dir():
        raise AggdecError(
            f"{folder} does not exist: it comes with a checkout; install the plugin by pip install -e ."
        )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return import_module(name)
