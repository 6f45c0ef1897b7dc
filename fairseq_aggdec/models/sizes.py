"""Sizes of Transformers by name: for `--arch` and for the random models of benchmarks."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Size:
    """The size of a Transformer."""

    width: int
    inner: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    like_bart: bool = False
    """learned positions, normalised and unscaled embeddings, GELU, one matrix for all embeddings"""
    pre_norm: bool = False
    """layer norms before attention and feed-forward layers, which deep and narrow models need in a short training"""
    dropout: float | None = None
    """None: fairseq's default, 0.1"""

    def options(self, decoder_layers: int | None = None) -> dict[str, Any]:
        """fairseq's architecture options; `decoder_layers` replaces the size's number."""
        sizes: dict[str, Any] = {
            "embed_dim": self.width,
            "ffn_embed_dim": self.inner,
            "attention_heads": self.heads,
        }
        sizes["normalize_before"] = self.pre_norm
        options: dict[str, Any] = {
            f"{side}_{k}": v
            for side in ("encoder", "decoder")
            for k, v in sizes.items()
        }
        options |= {
            "encoder_layers": self.encoder_layers,
            "decoder_layers": decoder_layers or self.decoder_layers,
        }
        # what differs from fairseq's defaults
        if self.dropout is not None:
            options["dropout"] = self.dropout
        if self.like_bart:
            options |= {
                "encoder_learned_pos": True,
                "decoder_learned_pos": True,
                "layernorm_embedding": True,
                "no_scale_embedding": True,
                "share_all_embeddings": True,
                "share_decoder_input_output_embed": True,
                "activation_fn": "gelu",
            }
        return options


_BIG = (
    (3, 6),
    (9, 6),
    (6, 3),
    (6, 9),
    (7, 5),
    (8, 4),
    (9, 3),
    (10, 2),
    (11, 1),
    (12, 2),
)
"""encoder and decoder layers: papers/002 Table 4, with 9 and 3 as the paper's choice, and 12+2 without BART"""
_SMALL = ((6, 6), (9, 3), (10, 2), (11, 1))
"""the same of models for small data and CPUs"""
SIZES = {
    "base": Size(512, 2048, 8, 6, 6),
    "big": Size(1024, 4096, 16, 6, 6, dropout=0.3),
    **{
        f"big-{encoder}-{decoder}": Size(1024, 4096, 16, encoder, decoder, dropout=0.3)
        for encoder, decoder in _BIG
    },
    **{
        f"small-{encoder}-{decoder}": Size(192, 768, 4, encoder, decoder, pre_norm=True)
        for encoder, decoder in _SMALL
    },
    "bart-base": Size(768, 3072, 12, 6, 6, like_bart=True),
    "bart-large": Size(1024, 4096, 16, 12, 12, like_bart=True),
    # papers/002 §4.4: BART-large with 2 decoder layers
    "bart-12-2": Size(1024, 4096, 16, 12, 2, like_bart=True),
    "bart-small": Size(256, 1024, 4, 4, 3, like_bart=True),  # for CPUs
}
"""A name ends with the numbers of encoder and decoder layers where they differ from those of the original model;
`bart-small` has no original."""


def architecture(name: str) -> str:
    """A size's name for `--arch`: `transformer_big_9_3` for `big-9-3`."""
    flat = name.replace("-", "_")
    return flat if flat.startswith("bart") else f"transformer_{flat}"
