"""Weights taken from a verifier, and how its encoder is recognised."""

import logging
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.warm_start import encoder_fingerprint
from tests.support.random_models import TINY, dictionary, random_model, save_base

WORDS = dictionary(20)
SHAPE: dict[str, Any] = {"share_all_embeddings": True, "encoder_normalize_before": True}


def save_verifier(folder: Path, words: int = 20, seed: int = 1, **changes: Any) -> str:
    """A verifier's checkpoint with three decoder layers."""
    vocabulary = dictionary(words)
    shape = {**SHAPE, "decoder_layers": 3, **changes}
    return str(
        save_base(
            random_model(seed, vocabulary, vocabulary, **shape),
            folder / "v.pt",
            **shape,
        )
    )


def drafter(**options: Any) -> NarDrafterModel:
    """A new drafter, as a training builds it."""
    args = Namespace(arch="nar_drafter", block_size=4, **{**TINY, **SHAPE, **options})
    ARCH_CONFIG_REGISTRY["nar_drafter"](args)
    return NarDrafterModel.build_model(
        args, SimpleNamespace(source_dictionary=WORDS, target_dictionary=WORDS)
    )


def test_encoder_is_taken_whole_and_frozen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        model = drafter(encoder_from=save_verifier(tmp_path), freeze_encoder=True)
    verifier = random_model(1, WORDS, WORDS, **SHAPE, decoder_layers=3)
    for name, value in verifier.encoder.state_dict().items():
        assert torch.equal(model.encoder.state_dict()[name], value), name
    assert "loaded encoder.embed_tokens.weight, encoder.layer_norm.bias" in caplog.text
    assert torch.equal(model.encoder_fingerprint, encoder_fingerprint(verifier.encoder))
    trainable = {
        name for name, weight in model.named_parameters() if weight.requires_grad
    }
    assert trainable
    assert all(name.startswith("decoder.") for name in trainable)
    # shared: frozen as well
    assert model.decoder.output_projection.weight is model.encoder.embed_tokens.weight
    assert not model.train().encoder.training
    assert model.decoder.training


def test_decoder_is_taken_where_it_fits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = save_verifier(tmp_path)
    with caplog.at_level(logging.INFO):
        model = drafter(
            encoder_from=path,
            decoder_from=path,
            freeze_encoder=True,
            decoder_ffn_embed_dim=48,
        )
    verifier = random_model(1, WORDS, WORDS, **SHAPE, decoder_layers=3)
    assert torch.equal(
        model.decoder.layers[1].self_attn.q_proj.weight,
        verifier.decoder.layers[1].self_attn.q_proj.weight,
    )
    loaded, skipped, new = (record.getMessage() for record in caplog.records[-3:])
    assert "loaded decoder.layers.0.encoder_attn.k_proj.bias" in loaded
    assert "decoder.layers.0.fc1.weight (32 x 16 there, 48 x 16 here)" in skipped
    assert "decoder.layers.2.fc2.bias (not in the drafter)" in skipped
    assert "decoder.embed_tokens.weight (shared with the frozen encoder)" in skipped
    assert new.endswith("new here decoder.mask_embedding")


def test_a_checkpoint_with_another_frozen_encoder_does_not_take_its_place(
    tmp_path: Path,
) -> None:
    """fairseq-train with the same --save-dir and another verifier, or with --finetune-from-model."""
    model = drafter(encoder_from=save_verifier(tmp_path), freeze_encoder=True)
    other = drafter(encoder_from=save_verifier(tmp_path, seed=2), freeze_encoder=True)
    model.load_state_dict(model.state_dict())
    with pytest.raises(
        AggdecError,
        match=r"has another encoder\.\S+ than --encoder-from .*/v\.pt, where this weight is frozen",
    ):
        other.load_state_dict(model.state_dict())


def test_fingerprint_knows_the_encoder() -> None:
    def fingerprint(seed: int = 1, **changes: Any) -> list[int]:
        return encoder_fingerprint(
            random_model(seed, WORDS, WORDS, **{**SHAPE, **changes}).encoder
        ).tolist()

    same = fingerprint()
    assert same == fingerprint()
    assert len(same) == 32
    assert (
        same
        == encoder_fingerprint(
            random_model(1, WORDS, WORDS, **SHAPE).half().encoder
        ).tolist()
    )
    others = [
        fingerprint(2),
        fingerprint(encoder_attention_heads=4),
        fingerprint(activation_fn="gelu"),
    ]
    others += [
        fingerprint(no_scale_embedding=True),
        fingerprint(encoder_normalize_before=False),
    ]
    assert all(same != other for other in others)


@pytest.mark.parametrize(
    ("verifier", "mine", "message"),
    [
        (
            {"words": 28},
            {},
            "embed_tokens.weight is 32 x 16 there, 24 x 16.*24 symbols.*verifier's data-bin",
        ),
        (
            {"encoder_layers": 3},
            {},
            "--encoder-layers is 3 there and 2 here: leave it out",
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
    ],
)
def test_a_verifier_that_does_not_fit(
    tmp_path: Path, verifier: dict, mine: dict, message: str
) -> None:
    path = save_verifier(tmp_path, **verifier)
    with pytest.raises(AggdecError, match=rf"--encoder-from .*v.pt: .*{message}"):
        drafter(encoder_from=path, **mine)
    if "words" in verifier:
        with pytest.raises(
            AggdecError,
            match=r"--decoder-from .*embed_tokens.weight is 32 x 16.*target dictionary",
        ):
            drafter(decoder_from=path)
    with pytest.raises(AggdecError, match="--freeze-encoder without --encoder-from"):
        drafter(freeze_encoder=True)
