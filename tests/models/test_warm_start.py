"""Weights taken from a verifier, and how its encoder is recognised."""

import logging
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.warm_start import encoder_fingerprint, warm_start
from tests.support.random_models import dictionary, random_drafter, random_model

WORDS = dictionary(20)
SHAPE: dict[str, Any] = {"share_all_embeddings": True, "encoder_normalize_before": True}


def save_verifier(folder: Path, words: int = 20, seed: int = 1, **changes: Any) -> Path:
    """A verifier's checkpoint with three decoder layers."""
    vocabulary = dictionary(words)
    shape = {**SHAPE, "decoder_layers": 3, **changes}
    model = random_model(seed, vocabulary, vocabulary, **shape)
    options = {"encoder_attention_heads": 2, "activation_fn": "relu", **shape}
    torch.save({"model": model.state_dict(), "cfg": {"model": Namespace(**options)}, "args": None}, folder / "v.pt")
    return folder / "v.pt"


def drafter(**changes: Any) -> NarDrafterModel:
    return random_drafter("causal, post-norm sinusoidal", 2, WORDS, WORDS, 4, **{**SHAPE, **changes})


def test_encoder_is_taken_whole_and_frozen(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, model = save_verifier(tmp_path), drafter(freeze_encoder=True)
    with caplog.at_level(logging.INFO):
        warm_start(model, str(path), None)
    verifier = random_model(1, WORDS, WORDS, **SHAPE, decoder_layers=3)
    for name, value in verifier.encoder.state_dict().items():
        assert torch.equal(model.encoder.state_dict()[name], value), name
    assert "loaded encoder.embed_tokens.weight, encoder.layer_norm.bias" in caplog.text
    assert torch.equal(model.encoder_fingerprint, encoder_fingerprint(verifier.encoder))
    trainable = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert trainable
    assert all(name.startswith("decoder.") for name in trainable)
    assert model.decoder.output_projection.weight is model.encoder.embed_tokens.weight  # shared: frozen as well
    assert not model.train().encoder.training
    assert model.decoder.training


def test_decoder_is_taken_where_it_fits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, model = save_verifier(tmp_path), drafter(freeze_encoder=True, decoder_ffn_embed_dim=48)
    before = model.decoder.layers[0].fc1.weight.clone()
    with caplog.at_level(logging.INFO):
        warm_start(model, str(path), str(path))
    verifier = random_model(1, WORDS, WORDS, **SHAPE, decoder_layers=3)
    assert torch.equal(
        model.decoder.layers[1].self_attn.q_proj.weight, verifier.decoder.layers[1].self_attn.q_proj.weight
    )
    assert torch.equal(model.decoder.layers[0].fc1.weight, before)
    loaded, skipped, new = (record.getMessage() for record in caplog.records[-3:])
    assert "loaded decoder.layers.0.encoder_attn.k_proj.bias" in loaded
    assert "decoder.layers.0.fc1.weight ((32, 16) there, (48, 16) here)" in skipped
    assert "decoder.layers.2.fc2.bias (not in the drafter)" in skipped
    assert "decoder.embed_tokens.weight (shared with the frozen encoder)" in skipped
    assert new.endswith("new in the drafter decoder.mask_embedding")


def test_a_checkpoint_with_another_frozen_encoder_does_not_take_its_place(tmp_path: Path) -> None:
    """fairseq-train with the same --save-dir and another verifier, or with --finetune-from-model."""
    (tmp_path / "first").mkdir()
    model, other = drafter(freeze_encoder=True), drafter(freeze_encoder=True)
    warm_start(model, str(save_verifier(tmp_path / "first")), None)
    warm_start(other, str(save_verifier(tmp_path, seed=2)), None)
    model.load_state_dict(model.state_dict())
    with pytest.raises(
        AggdecError, match=r"has another encoder\.\S+ than --encoder-from .*/v\.pt, where this weight is frozen"
    ):
        other.load_state_dict(model.state_dict())


def test_fingerprint_knows_the_encoder() -> None:
    def fingerprint(seed: int = 1, **changes: Any) -> list[int]:
        return encoder_fingerprint(random_model(seed, WORDS, WORDS, **{**SHAPE, **changes}).encoder).tolist()

    same = fingerprint()
    assert same == fingerprint()
    assert len(same) == 32
    assert same == encoder_fingerprint(random_model(1, WORDS, WORDS, **SHAPE).half().encoder).tolist()
    others = [fingerprint(2), fingerprint(encoder_attention_heads=4), fingerprint(activation_fn="gelu")]
    others += [fingerprint(no_scale_embedding=True), fingerprint(encoder_normalize_before=False)]
    assert all(same != other for other in others)


@pytest.mark.parametrize(
    ("verifier", "mine", "message"),
    [
        ({"words": 28}, {}, "embed_tokens.weight is 32 x 16 there and 24 x 16.*24 symbols.*verifier's data-bin"),
        ({"encoder_layers": 3}, {}, r"it has encoder.layers.2\..* and the drafter has not"),
        ({"encoder_attention_heads": 4}, {}, "--encoder-attention-heads is 4 there and 2 for the drafter"),
        ({}, {"no_scale_embedding": True}, "--no-scale-embedding"),
    ],
)
def test_a_verifier_that_does_not_fit(tmp_path: Path, verifier: dict, mine: dict, message: str) -> None:
    path = save_verifier(tmp_path, no_scale_embedding=False, **verifier)
    with pytest.raises(AggdecError, match=rf"--encoder-from .*v.pt: .*{message}"):
        warm_start(drafter(**mine), str(path), None)
    if "words" in verifier:
        with pytest.raises(AggdecError, match=r"--decoder-from .*embed_tokens.weight is 32 x 16.*target dictionary"):
            warm_start(drafter(), None, str(path))
    with pytest.raises(AggdecError, match="--freeze-encoder without --encoder-from"):
        warm_start(drafter(freeze_encoder=True), None, None)
