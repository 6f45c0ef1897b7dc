"""A Transformer's architecture in fairseq's options: reading it, filling in defaults, naming it, refusing options.

Options are flat on a command line (`encoder_layers`), and in groups `encoder` and `decoder` in YAML.

Named architectures with a shallow decoder (Shallow Aggressive Decoding, papers/002 §3.2 and Table 4): `--arch
transformer_big_9_3`, `transformer_small_11_1`, `bart_12_2` and the others of `sizes.SIZES` are fairseq's models
`transformer` and `bart` with other default sizes. Sizes that fairseq names keep that name: `transformer` (base),
`bart_base`, `bart_large`.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY, register_model_architecture
from fairseq.models.bart.model import bart_large_architecture
from fairseq.models.transformer.transformer_legacy import base_architecture

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.sizes import SIZES, Size, architecture


def recorded_options(checkpoint: dict[str, Any]) -> Any:
    """The model's options in a checkpoint: flat, or the group `model` of a configuration."""
    return (checkpoint.get("cfg") or {}).get("model") or checkpoint.get("args")


def option_of(options: Any, name: str) -> Any:
    """An option by its flat name, in flat options or in groups; None where it is absent."""
    values = vars(options) if isinstance(options, Namespace) else options or {}
    group, _, rest = name.partition("_")
    if group in ("encoder", "decoder") and group in values and isinstance(values[group], Mapping):
        values, name = values[group], rest
    return values[name] if name in values else None  # noqa: SIM401 (the `get` of a strict configuration raises)


def set_defaults(cfg: Any, **defaults: Any) -> None:
    """Fill in the options that the user left out; `defaults` have flat names."""
    for name, value in defaults.items():
        group, _, rest = name.partition("_")
        nested = getattr(cfg, group, None) if group in ("encoder", "decoder") and hasattr(cfg, group) else None
        if nested is not None:
            if rest not in nested:
                nested[rest] = value
        elif getattr(cfg, name, None) is None:
            setattr(cfg, name, value)


def set_sizes(cfg: Any, dim: int, ffn: int, heads: int, encoder_layers: int, decoder_layers: int) -> None:
    """Fill in the sizes of both sides, then fairseq's defaults of all other options."""
    sizes: dict[str, int] = {"embed_dim": dim, "ffn_embed_dim": ffn, "attention_heads": heads}
    for side, layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        set_defaults(cfg, **{f"{side}_{name}": size for name, size in sizes.items()}, **{f"{side}_layers": layers})
    if not hasattr(cfg, "decoder"):
        base_architecture(cfg)


def register_sizes(model: str, begin: Callable[[Any], None], small_decoder: int) -> None:
    """Register a model's architectures: Transformer-base, also by the model's own name, big, and small for CPUs.

    `begin` first fills in the options of the checkpoint on which the model is built; `small_decoder`: layers.
    """
    base, big, small = (512, 2048, 8, 6, 6), (1024, 4096, 16, 6, 6), (256, 1024, 4, 4, small_decoder)
    for name, sizes in {"": base, "_base": base, "_big": big, "_small": small}.items():

        def fill_in(cfg: Any, sizes: tuple[int, int, int, int, int] = sizes) -> None:
            begin(cfg)
            set_sizes(cfg, *sizes)

        register_model_architecture(model, model + name)(fill_in)


def refuse_architectures(cfg: Any, by: str, further: Mapping[str, bool] | None = None) -> None:
    """Raise `AggdecError` for a given option that block drafters and proposal heads do not support.

    `by`: the model's name for the message; `further`: more options that this model refuses, and whether they are given.
    """
    refused = {
        "--adaptive-softmax-cutoff": cfg.adaptive_softmax_cutoff is not None,
        "--cross-self-attention": cfg.cross_self_attention,
        "--no-cross-attention": cfg.no_cross_attention,
        "--quant-noise-pq": cfg.quant_noise.pq > 0,
        "--base-layers": bool(cfg.base_layers),
        **(further or {}),
    }
    for option, is_given in refused.items():
        if is_given:
            raise AggdecError(f"{option}: {by} does not support it; leave it out")


_NAMED_BY_FAIRSEQ = ("base", "bart-base", "bart-large")


def _fill_in(size: Size) -> Callable[[Any], None]:
    def fill_in(cfg: Any) -> None:
        set_defaults(cfg, **size.options())
        if size.like_bart:
            bart_large_architecture(cfg)
        else:
            base_architecture(cfg)

    return fill_in


def register_architectures() -> list[str]:
    """Register all sizes with fairseq, once; returns their names for `--arch`."""
    names = [architecture(name) for name in SIZES if name not in _NAMED_BY_FAIRSEQ]
    for name in SIZES:
        known = architecture(name)
        if known in names and known not in ARCH_MODEL_REGISTRY:
            model = "bart" if SIZES[name].like_bart else "transformer"
            register_model_architecture(model, known)(_fill_in(SIZES[name]))
    return names


register_architectures()
