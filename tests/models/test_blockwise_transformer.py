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

from fairseq_aggdec.compat import checkpoints
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.models import blockwise_transformer as module
from fairseq_aggdec.models.blockwise_transformer import BlockwiseTransformerModel
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
)
from tests.support.small_generators import generator

WORDS = dictionary(20)
K = 4


def inputs() -> dict[str, Tensor]:
    """A padded batch of sources and decoder inputs."""
    target = torch.randint(4, 24, (3, 6), generator=torch.Generator().manual_seed(4))
    target[:, 0] = WORDS.eos()
    return {
        **random_batch(1, WORDS, [5, 2, 7])["net_input"],
        "prev_output_tokens": target,
    }


@pytest.fixture(params=list(SHAPES))
def shape(request: pytest.FixtureRequest) -> dict[str, Any]:
    return SHAPES[request.param]


def test_frozen_identity_head_is_the_base_model_to_the_bit(
    shape: dict[str, Any], tmp_path: Path
) -> None:
    # PyTorch rounds otherwise where it is true
    base = random_model(3, WORDS, WORDS, **shape).requires_grad_(False)
    path = save_base(base, tmp_path / "base.pt", **shape)
    model = on_base(
        path, WORDS, WORDS, identity_head=True, freeze_base=True, dropout=0.3
    )
    draw_heads(model)
    for training in (True, False):  # a frozen base has no dropout
        model.train(training)
        with torch.no_grad():
            assert torch.equal(model(**inputs())[0], base(**inputs())[0])
    trainable = {
        name for name, weight in model.named_parameters() if weight.requires_grad
    }
    assert trainable == {
        f"decoder.heads.{name}"
        for name in ("inner", "inner_bias", "outer", "outer_bias")
    }
    exact = base.state_dict()
    # what is frozen is saved exactly whatever the precision, and loaded so
    state = model.bfloat16().state_dict()
    model.load_state_dict(state, strict=True)
    assert state["decoder.heads.inner"].dtype == torch.bfloat16
    for saved in (state, model.state_dict()):
        assert all(torch.equal(saved[name], value) for name, value in exact.items())


def test_every_new_head_starts_as_the_base_model(
    shape: dict[str, Any], tmp_path: Path
) -> None:
    base = random_model(3, WORDS, WORDS, **shape)
    model = on_base(save_base(base, tmp_path / "base.pt", **shape), WORDS, WORDS).eval()
    expected = base(**inputs())[0]
    everywhere = torch.ones(3, 6, dtype=torch.bool)
    found = model(
        **inputs(),
        heads=[(head, everywhere) for head in range(1, K + 1)],
        per_head=lambda _, logits: logits,
    )
    for logits in found:
        torch.testing.assert_close(logits.view_as(expected), expected)


@pytest.mark.parametrize("kind", HEAD_KINDS)
def test_heads_one_by_one(kind: str) -> None:
    """papers/004 §6: one hidden layer of k times the width, an output of k times the model's, residuals."""
    model = random_blockwise("pre-norm sinusoidal", kind, 1, WORDS, WORDS, K)
    layer, identity = model.decoder.heads, "identity" in kind
    features = torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(1))
    for head in range(1, K + 1):
        number = head - 1 - identity
        hidden = [
            (features @ w.T + b).relu()
            for w, b in zip(layer.inner, layer.inner_bias, strict=True)
        ]
        expected = features
        if number >= 0:
            read = hidden[number] if "own" in kind else torch.cat(hidden, dim=-1)
            expected = (
                features + read @ layer.outer[number].T + layer.outer_bias[number]
            )
        torch.testing.assert_close(layer(features, head), expected)
    assert layer.inner.size(0) == K - identity


@pytest.mark.parametrize("mode", ["greedy", "blockwise"])
def test_one_head_decodes_as_fairseq_does(mode: str, tmp_path: Path) -> None:
    """papers/004 Table 1, k = 1: the base with a trained layer, and nothing to propose."""
    model = on_base(
        save_base(random_model(1, WORDS, WORDS), tmp_path / "base.pt"),
        WORDS,
        WORDS,
        block_heads=1,
    ).eval()
    draw_heads(model)
    sample = random_batch(1, WORDS, [5, 2, 7])
    ours = generator(
        [model], mode, WORDS, block_draft=BlockDraftOptions(None, 1), max_len_b=9
    )
    assert_fairseqs(ours.generate([model], sample), [model], WORDS, sample, max_len_b=9)


def test_heads_of_the_base_are_taken_where_they_fit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        first = on_base(
            save_base(random_model(1, WORDS, WORDS), tmp_path / "base.pt"), WORDS, WORDS
        )
    assert "new here decoder.heads.inner" in caplog.text
    draw_heads(first)
    state: dict[str, Tensor] = {
        **first.state_dict(),
        "classification_heads.x.weight": torch.zeros(2),
    }
    options = {
        "block_heads": K,
        "arch": "blockwise_transformer",
        "base_checkpoint": "/no/longer/there.pt",
    }
    path = save_base(
        SimpleNamespace(state_dict=lambda: state), tmp_path / "heads.pt", **options
    )
    with caplog.at_level(logging.INFO):
        same = on_base(path, WORDS, WORDS)
        other = on_base(path, WORDS, WORDS, block_heads=K + 1)
    assert torch.equal(same.decoder.heads.outer, first.decoder.heads.outer)
    assert torch.equal(
        other.decoder.layers[0].fc1.weight, first.decoder.layers[0].fc1.weight
    )
    assert not other.decoder.heads.outer.any()
    assert "skipped classification_heads.x.weight (not needed)" in caplog.text
    assert "decoder.heads.outer (4 x 16 x 128 there, 5 x 16 x 160 here)" in caplog.text


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    model = random_model(1, WORDS, WORDS)
    weights, path = model.state_dict(), save_base(model, tmp_path / "base.pt")
    options: list[tuple[dict[str, Any], str]] = [
        ({"decoder_layers": 5}, "--decoder-layers is 2 there and 5 here: leave it out"),
        (
            {"path": None, "freeze_base": True},
            "--freeze-base without --base-checkpoint",
        ),
        ({"block_heads": 1, "identity_head": True}, "--block-heads 1"),
        (
            {"tgt_dict": dictionary(30)},
            r"target dictionary .* has 34 symbols: use the verifier's data-bin",
        ),
    ]
    for given, message in options:
        with pytest.raises(AggdecError, match=message):
            on_base(**{"path": path, "src_dict": WORDS, "tgt_dict": WORDS, **given})
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
        save_base(SimpleNamespace(state_dict=lambda: state), path)  # noqa: B023
        with pytest.raises(AggdecError, match=message):
            on_base(path, WORDS, WORDS)


def test_a_checkpoint_at_hand_is_loaded_without_its_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_base(random_model(1, WORDS, WORDS), tmp_path / "base.pt")
    args = Namespace(base_checkpoint=str(path), block_heads=3, freeze_base=True)
    ARCH_CONFIG_REGISTRY["blockwise_transformer"](args)
    path.unlink()
    task = SimpleNamespace(source_dictionary=WORDS, target_dictionary=WORDS)
    args.base_checkpoint = ""  # as aggdec export leaves it
    monkeypatch.setattr(module, "is_loading_models", lambda: True)
    ARCH_CONFIG_REGISTRY["blockwise_transformer"](args)
    model = BlockwiseTransformerModel.build_model(args, task)
    assert module.proposal_heads(model) == 3
    assert all(weight.requires_grad for weight in model.parameters()), (
        "as the base model's, which rounds alike"
    )
    assert not checkpoints.is_loading_models()
