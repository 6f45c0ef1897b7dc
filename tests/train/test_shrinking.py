"""Shallow checkpoints out of deep ones, of every form that fairseq has written."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models import build_model
from omegaconf import OmegaConf

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.train.shrinking import layer_counts, read_layers, shrink
from tests.support.helpers import refused_with
from tests.support.random_models import (
    TINY,
    arguments,
    dictionary,
    draw_weights,
    random_batch,
    task_of,
)

WORDS = dictionary(20)
SIZES = {"embed_dim": 16, "ffn_embed_dim": 32, "attention_heads": 2}
KEEP = "0,3"


def options_of(form: str) -> Any:
    """A model of 4+4 layers as the options of a checkpoint describe it."""
    flat = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in SIZES.items()
    }
    layers = {"encoder_layers": 4, "decoder_layers": 4}
    if form == "groups":
        groups = {side: {**SIZES, "layers": 4} for side in ("encoder", "decoder")}
        return {"_name": "transformer", **groups, "share_all_embeddings": True}
    if form == "name alone":  # the layers stand nowhere but in the architecture
        return {"_name": "transformer_small_6_6"}
    if form == "BART":
        return arguments("bart_large", **TINY | layers)
    return Namespace(arch="transformer", **flat, **layers, share_all_embeddings=True)


FORMS = ["command line", "old", "groups", "name alone", "BART"]


def built(options: Any, weights: dict[str, Any]) -> Any:
    """What is built from a checkpoint's own options, with its weights."""
    cfg = (
        OmegaConf.create(options)
        if isinstance(options, dict)
        else Namespace(**vars(options))
    )
    model = build_model(cfg, task_of(WORDS)).eval()
    if weights:
        model.load_state_dict(weights, strict=True)
    return model


def deep(form: str) -> dict[str, Any]:
    """A checkpoint in the middle of a training."""
    torch.manual_seed(1)
    options = options_of(form)
    model = built(options, {})
    draw_weights(model)
    state = {
        "model": model.state_dict(),
        "args": options,
        "cfg": None,
        "optimizer_history": [
            {"criterion_name": "A", "best_loss": 3.0},
            {"criterion_name": "B", "best_loss": 2.0},
        ],
        "last_optimizer_state": {"state": {0: 1.0}},
        "extra_state": {"epoch": 7, "train_iterator": {"epoch": 7}, "ema": {}},
        "task_state": {},
    }
    if form != "old":
        state["cfg"] = {"model": options, "task": {"_name": "translation"}}
        state["args"] = None
    return state


def outputs(model: Any) -> torch.Tensor:
    inputs = random_batch(1, WORDS, [5, 2])["net_input"]
    with torch.no_grad():
        read = torch.tensor([[2, 5, 7], [2, 4, 9]])
        return model(**inputs, prev_output_tokens=read)[0]


@pytest.mark.parametrize("form", FORMS)
def test_the_kept_layers_are_the_model(form: str) -> None:
    state = deep(form)
    before = layer_counts(state["model"])
    shallow = shrink(state, KEEP)
    assert layer_counts(state["model"]) == before, "the deep one is left as it was"
    assert layer_counts(shallow["model"]) == {**before, "decoder": 2}
    model = built(shallow["args"] or shallow["cfg"]["model"], shallow["model"])
    assert len(model.encoder.layers) == before["encoder"]
    # the deep model with the other layers taken out by hand
    reference = built(state["args"] or state["cfg"]["model"], state["model"])
    layers = reference.decoder.layers
    reference.decoder.layers = torch.nn.ModuleList([layers[0], layers[3]])
    assert torch.equal(outputs(model), outputs(reference))
    # nothing of the deep model's training is kept
    assert shallow["last_optimizer_state"] is None
    assert shallow["optimizer_history"] == [{"criterion_name": "B", "best_loss": 2.0}]
    assert shallow["extra_state"] == {"epoch": 0, "train_iterator": {"epoch": 0}}


@pytest.mark.parametrize("text", ["0,4", "0,0", "2,1", "-1", "", "0,,1"])
def test_layers_that_cannot_be_kept(text: str) -> None:
    with refused_with(f"keep {text}: give layers .* 0 to 3, each"):
        read_layers(text, 4)


def test_the_command_and_what_it_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "deep.pt"
    output = tmp_path / "new" / "shallow.pt"
    torch.save(deep("BART"), path)
    shrink_to = ["shrink", "--decoder-layers-to-keep", KEEP, str(path)]
    aggdec([*shrink_to, str(output)])
    assert "shallow.pt: 2 of 4 decoder layers" in capsys.readouterr().err
    counts = layer_counts(read_checkpoint(output)["model"])
    assert counts == {"encoder": 4, "decoder": 2}
    assert not list(tmp_path.rglob("*.partial"))

    with refused_with("is read for this, and would be overwritten"):
        aggdec([*shrink_to, str(path)])
    other = {"decoder.layers.0.fc1.weight": torch.zeros(1)}
    torch.save({"model": other, "cfg": {"model": {}}, "args": None}, path)
    with refused_with(r"deep.pt: no Transformer encoder-decoder"):
        aggdec([*shrink_to, str(tmp_path / "out.pt")])
