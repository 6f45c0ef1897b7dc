"""Small random block drafters, untrained: what they draft is noise that depends on everything they read."""

from collections.abc import Iterable
from typing import Any

from fairseq.data import Dictionary
from torch import Tensor

from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from tests.support.random_models import SHAPES, random_network

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


def texts_of(tokens: Tensor, lengths: Iterable[int]) -> list[list[int]]:
    """The beginnings, of these lengths, of the rows of B x T tokens."""
    return [row[: int(length)] for row, length in zip(tokens.tolist(), lengths, strict=True)]


def draft_logits(
    model: NarDrafterModel, src_tokens: Tensor, src_lengths: Tensor, prefix_tokens: Tensor, prefix_lengths: Tensor
) -> Tensor:
    """Logits of a draft, B x k x V, computed without a cache: the reference for the engine.

    Args:
        model: the drafter.
        src_tokens: B x S.
        src_lengths: B.
        prefix_tokens: B x P, the start symbol, then at least the prefix.
        prefix_lengths: B, the number of tokens in the prefix, without the start symbol, at most P-1.
    """
    encoder_out = model.encode(src_tokens, src_lengths)
    return model.decoder.output_layer(model.decoder(prefix_tokens, encoder_out, prefix_lengths[:, None])[:, 0])
