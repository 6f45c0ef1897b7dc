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
        """fairseq's architecture options; `decoder_layers` replaces the size's own number."""
        sizes: dict[str, Any] = {"embed_dim": self.width, "ffn_embed_dim": self.inner, "attention_heads": self.heads}
        sizes["normalize_before"] = self.pre_norm
        options: dict[str, Any] = {f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in sizes.items()}
        options |= {"encoder_layers": self.encoder_layers, "decoder_layers": decoder_layers or self.decoder_layers}
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


def _big(encoder_layers: int, decoder_layers: int) -> Size:
    """Transformer-big of papers/002 Tables 4 and 7."""
    return Size(1024, 4096, 16, encoder_layers, decoder_layers, dropout=0.3)


def _small(encoder_layers: int, decoder_layers: int) -> Size:
    """A size for small data and CPUs, with the number of layers of Transformer-big."""
    return Size(192, 768, 4, encoder_layers, decoder_layers, pre_norm=True)


def _bart_large(encoder_layers: int, decoder_layers: int) -> Size:
    return Size(1024, 4096, 16, encoder_layers, decoder_layers, like_bart=True)


SIZES = {
    "base": Size(512, 2048, 8, 6, 6),
    "big": _big(6, 6),
    # papers/002 Table 4, and 12+2 without BART
    "big-3-6": _big(3, 6),
    "big-9-6": _big(9, 6),
    "big-6-3": _big(6, 3),
    "big-6-9": _big(6, 9),
    "big-7-5": _big(7, 5),
    "big-8-4": _big(8, 4),
    "big-9-3": _big(9, 3),  # the paper's choice
    "big-10-2": _big(10, 2),
    "big-11-1": _big(11, 1),
    "big-12-2": _big(12, 2),
    "small-6-6": _small(6, 6),
    "small-9-3": _small(9, 3),
    "small-10-2": _small(10, 2),
    "small-11-1": _small(11, 1),
    "bart-base": Size(768, 3072, 12, 6, 6, like_bart=True),
    "bart-large": _bart_large(12, 12),
    "bart-12-2": _bart_large(12, 2),  # papers/002 §4.4: BART-large with 2 layers of its decoder
    "bart-small": Size(256, 1024, 4, 4, 3, like_bart=True),  # for CPUs
}
"""A name ends with the numbers of encoder and decoder layers where they differ from those of the original model;
`bart-small` has no original."""


def architecture(name: str) -> str:
    """A size's name for `--arch`: `transformer_big_9_3` for `big-9-3`."""
    flat = name.replace("-", "_")
    return flat if flat.startswith("bart") else f"transformer_{flat}"
