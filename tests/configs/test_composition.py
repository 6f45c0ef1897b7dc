"""Every configuration composes, and everything that it names exists in fairseq or in the plugin."""

import argparse
from typing import Any

import pytest
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import (
    ARCH_MODEL_NAME_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    MODEL_REGISTRY,
)
from fairseq.models.nat import FairseqNATModel
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from omegaconf import OmegaConf

from tests.configs.composing import (
    ALL,
    CONFIGS,
    compose,
    leaves,
    option_names,
    shared_parts,
    without_defaults,
    written,
)


def known_options(group: str, name: str) -> set[str]:
    """The options of what a group of the configuration selects.

    Raises `KeyError` where fairseq knows nothing of that name.
    """
    if group == "task":
        return option_names(TASK_DATACLASS_REGISTRY[name])
    if group == "model":
        model = ARCH_MODEL_NAME_REGISTRY[name]
        if MODEL_DATACLASS_REGISTRY.get(model):
            return option_names(MODEL_DATACLASS_REGISTRY[model])
        parser = argparse.ArgumentParser()
        MODEL_REGISTRY[model].add_args(parser)
        flat = {action.dest for action in parser._actions}
        if issubclass(MODEL_REGISTRY[model], FairseqNATModel):
            # the criterion's, which these models look for among their own
            flat.add("label_smoothing")
        # fairseq's Transformers take `encoder_layers` as `layers` of `encoder` too
        return flat | {
            name.replace(f"{side}_", f"{side}.", 1)
            for side in ("encoder", "decoder")
            for name in flat
        }
    return option_names(REGISTRIES[group]["dataclass_registry"][name])


@pytest.mark.parametrize("experiment, model", ALL)
def test_what_is_written_is_composed_of_options_that_exist(
    experiment: str, model: str
) -> None:
    assert compose(experiment, model).criterion._name in CRITERION_REGISTRY
    said = written(experiment, model)
    for group in said:
        given = leaves(said._get_node(group))
        kind = FairseqConfig.__dataclass_fields__[group].type
        names = (
            known_options(group, given.pop("_name"))
            if kind is Any
            else option_names(kind)
        )
        assert set(given) <= names, f"{group}: {sorted(set(given) - names)}"
    # hydra lets the shared files win over the experiment's own: they must not say the same thing
    own = OmegaConf.load(CONFIGS / experiment / f"{model}.yaml")
    mine = set(leaves(without_defaults(own)))
    for name, part in shared_parts(own):
        assert not mine & set(leaves(part)), f"{name} says it too, and wins"
