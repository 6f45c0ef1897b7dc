"""Heads on a base model: what is taken from its checkpoint, what stays as it was, what the heads compute."""

import logging
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor

from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.models import blockwise_transformer as module
from fairseq_aggdec.models.blockwise_transformer import BlockwiseTransformerModel
from tests.support.helpers import refused_with
from tests.support.oracle import assert_fairseqs
from tests.support.random_models import (
    HEAD_KINDS,
    SHAPES,
    dictionary,
    draw_heads,
    on_base,
    random_batch,
    random_blockwise,
    random_model,
    save_base,
    task_of,
)
from tests.support.small_generators import generator

WORDS = dictionary(20)
K = 4
TARGET = torch.randint(4, 24, (3, 6), generator=torch.Generator().manual_seed(4))
TARGET[:, 0] = WORDS.eos()
INPUTS = {
    **random_batch(1, WORDS, [5, 2, 7])["net_input"],
    "prev_output_tokens": TARGET,
}
"""a padded batch"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "base.pt"


def save_state(state: dict[str, Tensor], path: Path, **options: Any) -> Path:
    return save_base(SimpleNamespace(state_dict=lambda: state), path, **options)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_frozen_identity_head_is_the_base_model_to_the_bit(
    shape: dict[str, Any], path: Path
) -> None:
    # PyTorch rounds otherwise where gradients are needed
    base = random_model(3, WORDS, **shape).requires_grad_(False)
    options = {"identity_head": True, "freeze_base": True, "dropout": 0.3}
    model = on_base(save_base(base, path, **shape), WORDS, **options)
    draw_heads(model)
    for training in (True, False):  # a frozen base has no dropout
        model.train(training)
        with torch.no_grad():
            assert torch.equal(model(**INPUTS)[0], base(**INPUTS)[0])
    for name, weight in model.named_parameters():
        assert weight.requires_grad == name.startswith("decoder.heads."), name
    # what is frozen is saved exactly whatever the precision, and loaded so
    state = model.bfloat16().state_dict()
    model.load_state_dict(state, strict=True)
    assert state["decoder.heads.inner"].dtype == torch.bfloat16
    for saved in (state, model.state_dict()):
        for name, value in base.state_dict().items():
            assert torch.equal(saved[name], value), name


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_new_head_starts_as_the_base_model(
    shape: dict[str, Any], path: Path
) -> None:
    base = random_model(3, WORDS, **shape)
    model = on_base(save_base(base, path, **shape), WORDS).eval()
    everywhere = torch.ones(3, 6, dtype=torch.bool)
    expected = base(**INPUTS)[0]
    found = model(
        **INPUTS,
        heads=[(head, everywhere) for head in range(1, K + 1)],
        per_head=lambda _, logits: logits,
    )
    for logits in found:
        torch.testing.assert_close(logits.view_as(expected), expected)


@pytest.mark.parametrize("kind", HEAD_KINDS)
def test_heads_one_by_one(kind: str) -> None:
    """papers/004 §6: one hidden layer of k times the width, an output of k times the model's, residuals."""
    layer = random_blockwise("pre-norm sinusoidal", kind, 1, WORDS, K).decoder.heads
    features = torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(1))
    hidden = [
        (features @ weight.T + bias).relu()
        for weight, bias in zip(layer.inner, layer.inner_bias, strict=True)
    ]
    expected = []
    for outer, bias, own in zip(layer.outer, layer.outer_bias, hidden, strict=True):
        read = own if "own" in kind else torch.cat(hidden, dim=-1)
        expected.append(features + read @ outer.T + bias)
    if "identity" in kind:
        expected.insert(0, features)
    for head, output in zip(range(1, K + 1), expected, strict=True):
        torch.testing.assert_close(layer(features, head), output)


@pytest.mark.parametrize("mode", ["greedy", "blockwise"])
def test_one_head_decodes_as_fairseq_does(mode: str, path: Path) -> None:
    """papers/004 Table 1, k = 1: the base with a trained layer, and nothing to propose."""
    base = save_base(random_model(1, WORDS), path)
    model = on_base(base, WORDS, block_heads=1).eval()
    draw_heads(model)
    sample = random_batch(1, WORDS, [5, 2, 7])
    draft = BlockDraftOptions(None, 1)
    ours = generator([model], mode, WORDS, block_draft=draft, max_len_b=9)
    assert_fairseqs(ours.generate([model], sample), [model], WORDS, sample, max_len_b=9)


def test_heads_of_the_base_are_taken_where_they_fit(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first = on_base(save_base(random_model(1, WORDS), path), WORDS)
    assert "new here decoder.heads.inner" in caplog.text
    draw_heads(first)
    state = {**first.state_dict(), "classification_heads.x.weight": torch.zeros(2)}
    options = {"block_heads": K, "arch": "blockwise_transformer"}
    options["base_checkpoint"] = "/no/longer/there.pt"
    save_state(state, path, **options)
    same = on_base(path, WORDS).decoder
    other = on_base(path, WORDS, block_heads=K + 1).decoder
    assert torch.equal(same.heads.outer, first.decoder.heads.outer)
    assert torch.equal(other.layers[0].fc1.weight, first.decoder.layers[0].fc1.weight)
    assert not other.heads.outer.any()
    assert "skipped classification_heads.x.weight (not needed)" in caplog.text
    assert "decoder.heads.outer (4 x 16 x 128 there, 5 x 16 x 160 here)" in caplog.text


@pytest.mark.parametrize(
    "options, message",
    [
        ({"decoder_layers": 5}, "--decoder-layers is 2 there and 5 here: leave it out"),
        ({"path": None, "freeze_base": True}, "--freeze-base without --base-checkp"),
        ({"block_heads": 1, "identity_head": True}, "--block-heads 1"),
        (
            {"tgt_dict": dictionary(30)},
            r"target dictionary .* has 34 symbols: use the verifier's data-bin",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: dict[str, Any], message: str, path: Path
) -> None:
    save_base(random_model(1, WORDS), path)
    with refused_with(message):
        on_base(**{"path": path, "words": WORDS, **options})


def test_weights_that_do_not_fit_are_refused(path: Path) -> None:
    weights = random_model(1, WORDS).state_dict()
    states = {
        r"lacks decoder.layers.0.fc2.bias": {
            name: value for name, value in weights.items() if "fc2" not in name
        },
        r"has decoder.layers.0.c_attn, unlike a Transformer with its options": {
            **weights,
            "decoder.layers.0.c_attn": torch.zeros(2),
        },
        "no Transformer encoder-decoder": {
            name: weights[name] for name in weights if name.startswith("encoder")
        },
    }
    for message, state in states.items():
        save_state(state, path)
        with refused_with(message):
            on_base(path, WORDS)


def test_a_checkpoint_at_hand_is_loaded_without_its_base(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = random_model(1, WORDS)
    args = Namespace(base_checkpoint=str(save_base(base, path)), block_heads=3)
    args.freeze_base = True
    ARCH_CONFIG_REGISTRY["blockwise_transformer"](args)
    path.unlink()
    args.base_checkpoint = ""  # as aggdec export leaves it
    monkeypatch.setattr(module, "is_loading_models", lambda: True)
    ARCH_CONFIG_REGISTRY["blockwise_transformer"](args)
    model = BlockwiseTransformerModel.build_model(args, task_of(WORDS))
    assert module.proposal_heads(model) == 3
    # as the base model's, which rounds alike
    assert all(weight.requires_grad for weight in model.parameters())
