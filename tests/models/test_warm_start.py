"""Weights taken from a verifier, and how its encoder is recognised."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.warm_start import encoder_fingerprint
from tests.hub.imported_models import Imported
from tests.support.helpers import refused_with
from tests.support.random_models import (
    TINY,
    arguments,
    dictionary,
    random_model,
    save_base,
    task_of,
)

WORDS = dictionary(20)
SHAPE: Any = {"share_all_embeddings": True, "encoder_normalize_before": True}
VERIFIER = random_model(1, WORDS, **SHAPE, decoder_layers=3)


def save_verifier(folder: Path, words: int = 20, seed: int = 1, **changes: Any) -> str:
    """A verifier's checkpoint with three decoder layers."""
    symbols = dictionary(words)
    shape = {**SHAPE, "decoder_layers": 3, **changes}
    model = random_model(seed, symbols, **shape)
    return str(save_base(model, folder / "v.pt", **shape))


def drafter(**options: Any) -> NarDrafterModel:
    """A new drafter, as a training builds it."""
    args = arguments("nar_drafter", block_size=4, **TINY | SHAPE | options)
    return NarDrafterModel.build_model(args, task_of(WORDS))


def test_encoder_is_taken_whole_and_frozen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    model = drafter(encoder_from=save_verifier(tmp_path), freeze_encoder=True)
    for name, value in VERIFIER.encoder.state_dict().items():
        assert torch.equal(model.encoder.state_dict()[name], value), name
    assert "loaded encoder.embed_tokens.weight, encoder.layer_norm.bias" in caplog.text
    assert torch.equal(model.encoder_fingerprint, encoder_fingerprint(VERIFIER.encoder))
    # the shared matrix is frozen as well
    matrix = model.decoder.output_projection.weight
    assert matrix is model.encoder.embed_tokens.weight
    for name, weight in model.named_parameters():
        is_trained = name.startswith("decoder.") and weight is not matrix
        assert weight.requires_grad == is_trained, name
    assert not model.train().encoder.training
    assert model.decoder.training


def test_decoder_is_taken_where_it_fits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = save_verifier(tmp_path)
    options = {"freeze_encoder": True, "decoder_ffn_embed_dim": 48}
    model = drafter(encoder_from=path, decoder_from=path, **options)
    taken, given = (
        each.decoder.layers[1].self_attn.q_proj.weight for each in (model, VERIFIER)
    )
    assert torch.equal(taken, given)
    loaded, skipped, new = (record.getMessage() for record in caplog.records[-3:])
    assert "loaded decoder.layers.0.encoder_attn.k_proj.bias" in loaded
    assert "decoder.layers.0.fc1.weight (32 x 16 there, 48 x 16 here)" in skipped
    assert "decoder.layers.2.fc2.bias (not in the drafter)" in skipped
    assert "decoder.embed_tokens.weight (shared with the frozen encoder)" in skipped
    assert new.endswith("new here decoder.mask_embedding")


def test_a_drafter_of_t5_has_its_encoder_and_what_is_computed_alike_of_its_decoder(
    tmp_path: Path,
) -> None:
    imported = Imported("t5", tmp_path / "imported")
    verifier = imported.of(imported.rows[0]).model.models[0]
    path = str(imported.folder / "model.pt")
    options: Any = {"encoder_from": path, "decoder_from": path, "decoder_layers": 1}

    def new(**more: Any) -> NarDrafterModel:
        args = arguments("nar_drafter", freeze_encoder=True, **options | more)
        task = task_of(verifier.encoder.dictionary)
        return NarDrafterModel.build_model(args, task)

    model = new()
    for name, value in verifier.encoder.state_dict().items():
        assert model.encoder.state_dict()[name].equal(value), name
    found = encoder_fingerprint(verifier.encoder)
    assert model.encoder_fingerprint.equal(found)
    verifier.encoder.distance_bias.longest += 1
    assert not found.equal(encoder_fingerprint(verifier.encoder))
    # the embeddings are not scaled, and outputs have the scale of T5's
    decoder = model.decoder
    assert decoder.output_projection.weight is model.encoder.embed_tokens.weight
    assert decoder.embed_scale == 1
    assert decoder.layer_norm.weight.equal(verifier.decoder.layer_norm.weight)
    # its layers have other heads and norms
    assert decoder.layers[0].fc1.weight.shape == (96, 48)
    assert not decoder.layers[0].fc1.weight.equal(verifier.decoder.layers[0].fc1.weight)
    with refused_with("--mask-source-copy needs position embeddings, which T5 has not"):
        new(mask_source_copy=True)


def test_a_checkpoint_with_another_frozen_encoder_does_not_take_its_place(
    tmp_path: Path,
) -> None:
    """fairseq-train with the same --save-dir and another verifier, or with --finetune-from-model."""
    model = drafter(encoder_from=save_verifier(tmp_path), freeze_encoder=True)
    other = drafter(encoder_from=save_verifier(tmp_path, seed=2), freeze_encoder=True)
    model.load_state_dict(model.state_dict())
    refused = (
        r"has another encoder\.\S+ than --encoder-from .*/v\.pt, where this weight"
    )
    with refused_with(refused):
        other.load_state_dict(model.state_dict())


def test_fingerprint_knows_the_encoder() -> None:
    def fingerprint(seed: int = 1, **changes: Any) -> list[int]:
        model = random_model(seed, WORDS, **{**SHAPE, **changes})
        found = encoder_fingerprint(model.encoder).tolist()
        assert encoder_fingerprint(model.half().encoder).tolist() == found
        return found

    first = fingerprint()
    assert first == fingerprint()
    assert len(first) == 32
    assert first != fingerprint(2)
    for change in (
        {"encoder_attention_heads": 4},
        {"activation_fn": "gelu"},
        {"no_scale_embedding": True},
        {"encoder_normalize_before": False},
    ):
        assert first != fingerprint(**change), change


@pytest.mark.parametrize(
    "verifier, options, message",
    [
        (
            {"words": 28},
            {},
            "--encoder-from .*v.pt: .*embed_tokens.weight is 32 x 16 there, 24 x 16.*24 symbols.*verifier's data-bin",
        ),
        (
            {"words": 28},
            {"encoder_from": None, "decoder_from": "v.pt"},
            "--decoder-from .*embed_tokens.weight is 32 x 16.*target dictionary",
        ),
        (
            {"encoder_layers": 3},
            {},
            "--encoder-from .*v.pt: .*--encoder-layers is 3 there and 2 here: leave it",
        ),
        (
            {"encoder_attention_heads": 4},
            {},
            "--encoder-attention-heads is 4 there and 2 here",
        ),
        (
            {},
            {"no_scale_embedding": True},
            "--no-scale-embedding is False there and True here",
        ),
        (
            {},
            {"encoder_from": None, "freeze_encoder": True},
            "--freeze-encoder without --encoder-from",
        ),
    ],
)
def test_a_verifier_that_does_not_fit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verifier: dict[str, Any],
    options: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    save_verifier(tmp_path, **verifier)
    with refused_with(message):
        drafter(**{"encoder_from": "v.pt", **options})
