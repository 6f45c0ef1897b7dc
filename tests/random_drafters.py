"""Small random block drafters, untrained: what they draft is noise that depends on everything they read."""

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel

from fairseq_aggdec.models.nar_drafter import NarDrafterModel, nar_drafter
from fairseq_aggdec.models.warm_start import encoder_fingerprint
from tests.random_models import SHAPES, draw_weights

DRAFTER_SHAPES: dict[str, dict[str, Any]] = {
    **{f"causal, {name}": shape for name, shape in SHAPES.items()},
    "causal, source copy": {"mask_source_copy": True},
    "causal, source copy, learned": {"mask_source_copy": True, "decoder_learned_pos": True},
    "bidirectional": {"prefix_attention": "bidirectional"},
    "bidirectional, source copy, pre-norm learned": {
        "prefix_attention": "bidirectional",
        "mask_source_copy": True,
        "decoder_normalize_before": True,
        "decoder_learned_pos": True,
    },
}


def random_drafter(
    shape: str, seed: int, src_dict: Dictionary, tgt_dict: Dictionary, block_size: int, **changes: Any
) -> NarDrafterModel:
    """A drafter of a named shape, with architecture options changed as given."""
    args = Namespace(
        encoder_embed_dim=16, encoder_ffn_embed_dim=32, encoder_layers=2, encoder_attention_heads=2,
        decoder_embed_dim=16, decoder_ffn_embed_dim=32, decoder_layers=2, decoder_attention_heads=2,
        max_source_positions=64, max_target_positions=64, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
        arch="nar_drafter", block_size=block_size,
    )  # fmt: skip
    vars(args).update({**DRAFTER_SHAPES[shape], **changes})
    nar_drafter(args)
    torch.manual_seed(seed)
    model = NarDrafterModel.build_model(args, SimpleNamespace(source_dictionary=src_dict, target_dictionary=tgt_dict))
    draw_weights(model)
    return model.eval()


def share_encoder(drafter: NarDrafterModel, verifier: FairseqEncoderDecoderModel) -> None:
    """As --encoder-from VERIFIER --freeze-encoder leaves it."""
    drafter.encoder.load_state_dict(verifier.encoder.state_dict())
    drafter.encoder_fingerprint.copy_(encoder_fingerprint(verifier.encoder))
