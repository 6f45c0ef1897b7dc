"""Composing an experiment's configuration as fairseq-hydra-train does, without starting a process."""

from argparse import Namespace
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

import fairseq_aggdec

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
SHARED = CONFIGS / "shared"
DESCRIPTIONS = {"answers", "tables", "papers"}
"""keys of about.yaml and tables.yaml, which describe no model"""


def experiments() -> list[str]:
    """All folders of configs/ but `shared`."""
    return sorted(
        path.name
        for path in CONFIGS.iterdir()
        if path.is_dir() and path.name != "shared"
    )


def models(experiment: str) -> list[str]:
    """Names of the models' YAML files."""
    files = (CONFIGS / experiment).glob("*.yaml")
    return sorted(
        path.stem for path in files if not DESCRIPTIONS & set(OmegaConf.load(path))
    )


ALL = [
    (experiment, model) for experiment in experiments() for model in models(experiment)
]


@cache
def _start() -> None:
    import fairseq.criterions
    import fairseq.models
    import fairseq.optim.lr_scheduler
    import fairseq.tasks  # noqa: F401
    from fairseq.dataclass.initialize import hydra_init
    from fairseq.utils import import_user_module
    from hydra.core.config_store import ConfigStore

    fairseq_aggdec.register()
    for folder in CONFIGS.glob("*/user_dir"):
        import_user_module(Namespace(user_dir=str(folder)))
    # hydra would copy the options of all models, tasks and criteria for each configuration: half of the time it takes
    ConfigStore.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]
    hydra_init()


@cache
def _without_defaults(experiment: str, model: str) -> Any:
    """What hydra makes of the files; what scripts/train.sh fills in is filled in."""
    _start()
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.config_store import ConfigStore

    known = ConfigStore.instance().repo
    # as `hydra_init(model)` does, which takes a while
    known[f"{model}.yaml"] = known["config.yaml"]
    paths = [
        "common.user_dir=plugin",
        "task.data=data-bin",
        "checkpoint.save_dir=checkpoints",
    ]
    search = f"hydra.searchpath=[file://{SHARED}]"
    with initialize_config_dir(str(CONFIGS / experiment), version_base="1.1"):
        return hydra_compose(model, overrides=[search, *paths])


@cache
def compose(experiment: str, model: str, overrides: tuple[str, ...] = ()) -> Any:
    """The configuration with fairseq's defaults, as fairseq-hydra-train composes it.

    Raises `hydra.errors.HydraException` where a file or an override does not fit.
    """
    config = _without_defaults(experiment, model).copy()
    from fairseq.dataclass.initialize import add_defaults
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.override_parser.overrides_parser import OverridesParser

    # hydra's own last step: the others do not depend on overrides of single values
    ConfigLoaderImpl._apply_overrides_to_config(
        OverridesParser.create().parse_overrides(list(overrides)), config
    )
    add_defaults(config)
    return config


@cache
def written(experiment: str, model: str) -> Any:
    """What the model's YAML file and the shared ones it is made of say, without fairseq's defaults."""
    own = OmegaConf.load(CONFIGS / experiment / f"{model}.yaml")
    return OmegaConf.merge(
        *(load for _, load in shared_parts(own)), without_defaults(own)
    )


def without_defaults(config: Any) -> Any:
    return OmegaConf.create(
        {key: config._get_node(key) for key in config if key != "defaults"}
    )


def shared_parts(config: Any) -> list[tuple[str, Any]]:
    """The shared files of a `defaults` list, and theirs, in the order in which they are merged."""
    parts = []
    for name in config.get("defaults", []):
        if name == "_self_" or not (SHARED / f"{name.lstrip('/')}.yaml").is_file():
            continue
        part = _shared(name)
        parts += [*shared_parts(part), (name, without_defaults(part))]
    return parts


@cache
def _shared(name: str) -> Any:
    return OmegaConf.load(SHARED / f"{name.lstrip('/')}.yaml")


def leaves(config: Any) -> dict[str, Any]:
    """Dotted names and values of a configuration's ends."""

    def ends(names: list[str], value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict):
            return [(".".join(names), value)]
        return [
            end
            for name, item in value.items()
            for end in ends([*names, str(name)], item)
        ]

    return dict(ends([], OmegaConf.to_container(config)))


def option_names(dataclass: Any) -> set[str]:
    """Dotted names of a dataclass's fields and of those of the dataclasses in it."""
    names = set()
    for item in fields(dataclass):
        names.add(item.name)
        if is_dataclass(item.type):
            names |= {f"{item.name}.{name}" for name in option_names(item.type)}
    return names
