"""Filling in a Transformer's architecture where the user left options out."""

from typing import Any

from fairseq.models.transformer.transformer_legacy import base_architecture


def set_defaults(cfg: Any, **defaults: Any) -> None:
    """Fill in what the user left out: flat names on the command line, `encoder` and `decoder` groups in YAML."""
    for name, value in defaults.items():
        group, _, rest = name.partition("_")
        nested = getattr(cfg, group, None) if group in ("encoder", "decoder") and hasattr(cfg, group) else None
        if nested is not None:
            if rest not in nested:
                nested[rest] = value
        elif getattr(cfg, name, None) is None:
            setattr(cfg, name, value)


def set_sizes(cfg: Any, dim: int, ffn: int, heads: int, encoder_layers: int, decoder_layers: int) -> None:
    """Sizes of both sides, then fairseq's defaults for the rest."""
    sizes: dict[str, int] = {"embed_dim": dim, "ffn_embed_dim": ffn, "attention_heads": heads}
    for side, layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        set_defaults(cfg, **{f"{side}_{name}": size for name, size in sizes.items()}, **{f"{side}_layers": layers})
    if not hasattr(cfg, "decoder"):
        base_architecture(cfg)
