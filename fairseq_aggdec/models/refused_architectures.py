"""Options of fairseq's Transformer with which neither a block drafter nor proposal heads work."""

from collections.abc import Mapping
from typing import Any

from fairseq_aggdec.errors import AggdecError


def refuse_architectures(cfg: Any, by: str, further: Mapping[str, bool] | None = None) -> None:
    """Raises `AggdecError` where such an option is given.

    Args:
        cfg: a `TransformerConfig`.
        by: the name of the model in the message.
        further: {option: whether it is given} for options that only this model refuses.
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
