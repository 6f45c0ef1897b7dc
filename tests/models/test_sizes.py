"""Sizes by name, and the named architectures made of them."""

from argparse import Namespace
from typing import Any

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, build_model
from omegaconf import OmegaConf

from fairseq_aggdec.models.sizes import SIZES, architecture
from tests.support.random_models import dictionary, task_of

TASK = task_of(dictionary(20))


def test_every_size_has_a_name_for_arch() -> None:
    for name in SIZES.keys() - {"base"}:  # fairseq's is `transformer`
        arch = architecture(name)
        assert ARCH_MODEL_NAME_REGISTRY[arch] == (
            "bart" if name.startswith("bart") else "transformer"
        )
        if name.startswith(("big-", "small-", "bart-1")):
            args = Namespace()
            ARCH_CONFIG_REGISTRY[arch](args)
            assert f"-{args.encoder_layers}-{args.decoder_layers}" in name


def test_bart_from_yaml_takes_the_weights_of_a_checkpoint() -> None:
    """fairseq asks it for its task, which options from YAML lack; to those of a training none can be added later."""
    cfg = OmegaConf.create(
        {"_name": "bart_small", "encoder_layers": 1, "decoder_layers": 1}
    )
    OmegaConf.set_struct(cfg, True)
    model = build_model(cfg, TASK)
    model.load_state_dict(model.state_dict())
    assert (len(model.encoder.layers), model.decoder.layers[0].fc1.out_features) == (
        1,
        1024,
    )


@pytest.mark.parametrize(
    "form, options, layers",
    [
        ("command line", {"decoder_layers": 2}, (11, 2)),
        ("YAML", {}, (11, 1)),
        ("YAML", {"decoder_layers": 2}, (11, 2)),
        ("YAML", {"encoder": {"layers": 3}, "decoder": {"ffn_embed_dim": 64}}, (3, 1)),
    ],
)
def test_options_beside_the_name(
    form: str, options: dict[str, Any], layers: tuple[int, int]
) -> None:
    """In YAML flat or in groups."""
    name = "transformer_small_11_1"
    cfg: Any = (
        OmegaConf.create({"_name": name, **options})
        if form == "YAML"
        else Namespace(arch=name, **options)
    )
    model = build_model(cfg, TASK)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == layers
    assert model.encoder.layers[0].fc1.weight.shape == (768, 192)
    assert model.decoder.layers[0].fc1.out_features == (
        64 if "decoder" in options else 768
    )
    assert model.decoder.layers[0].normalize_before
