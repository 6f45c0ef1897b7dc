"""The numbers of the configurations, against the papers' tables in hyperparameters.yaml."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.configs.composing import compose

PAPERS = yaml.safe_load(
    Path(__file__).with_name("hyperparameters.yaml").read_text("utf-8")
)
MODELS = sorted(
    {model for table in PAPERS["tables"] for model in chain.from_iterable(table["of"])}
)


def value(config: Any, name: str) -> Any:
    """The value of an option; None where the configuration does not have it."""
    for key in name.split("."):
        config = config.get(key) if config is not None else None
    return getattr(config, "name", config)


@pytest.mark.parametrize("model", MODELS)
def test_a_configuration_is_that_of_the_papers(model: str) -> None:
    config = compose(*model.split("/"))
    for table in PAPERS["tables"]:
        if model not in chain.from_iterable(table["of"]):
            continue
        said = table.get("says", {})
        if "size" in table:
            size = PAPERS["sizes"][table["size"]]
            said = {
                f"model.{side}.{name}": size[name]
                for side in ("encoder", "decoder")
                for name in size
            }
            said["model.share_all_embeddings"] = True
        assert {name: value(config, name) for name in said} == said
        for name, choices in table.get("one_of", {}).items():
            assert value(config, name) in choices


def test_the_peak_of_the_learning_rate_is_tensor2tensors() -> None:
    base = compose("wmt14_blockwise", "base")
    peak = 2 * 512**-0.5 * base.lr_scheduler.warmup_updates**-0.5
    assert base.optimization.lr[0] == pytest.approx(peak, rel=1e-3)
