"""Small random block drafters, untrained: what they draft is noise that depends on everything they read."""

from typing import Any

from fairseq.data import Dictionary

from fairseq_aggdec.lab.lossless.fuzzing.random_models import random_network, share_encoder
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from tests.random_models import SHAPES

__all__ = ["share_encoder"]

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
    options = {"block_size": block_size, **DRAFTER_SHAPES[shape], **changes}
    return random_network("nar_drafter", seed, src_dict, tgt_dict, **options)
