"""Named architectures with a shallow decoder (Shallow Aggressive Decoding, papers/002 §3.2 and Table 4).

`--arch transformer_big_9_3`, `transformer_small_11_1`, `bart_12_2` and the others of `sizes.SIZES` are fairseq's models
`transformer` and `bart` with other default sizes. Sizes that fairseq names keep that name: `transformer` (base),
`bart_base`, `bart_large`.
"""

from collections.abc import Callable
from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY, register_model_architecture
from fairseq.models.bart.model import bart_large_architecture
from fairseq.models.transformer.transformer_legacy import base_architecture

from fairseq_aggdec.models.architecture_defaults import set_defaults
from fairseq_aggdec.models.sizes import SIZES, Size, architecture

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
