"""`aggdec shrink`: a shallow model out of some layers of a deep one (papers/002 §4.4: 12+2 out of BART-large).

fairseq can prune layers while it loads a model (`--encoder-layers-to-keep`, for LayerDrop), but silently ignores layers
that do not exist, and drops a whole side where only the other side's layers are named.
"""

import re
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from fairseq_aggdec.compat.checkpoints import without_training
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.train.rewriting import rewrite

SIDES = ("encoder", "decoder")
_LAYER = re.compile(r"^(encoder|decoder)\.layers\.(\d+)\.")


def layer_counts(weights: Iterable[str]) -> dict[str, int]:
    """The number of layers of each side, by the names of a model's weights."""
    counts = dict.fromkeys(SIDES, 0)
    for match in filter(None, map(_LAYER.match, weights)):
        counts[match[1]] = max(counts[match[1]], int(match[2]) + 1)
    return counts


def read_layers(text: str, option: str, available: int) -> list[int]:
    """The layers that an option names: numbers from 0 below `available`, separated by commas, in ascending order.

    Raises:
        AggdecError: something is no number, too large, named twice or out of order.
    """
    parts = [part.strip() for part in text.split(",")]
    numbers = [int(part) for part in parts if re.fullmatch(r"\d+", part, re.ASCII)]
    if len(numbers) < len(parts) or numbers != sorted(set(numbers)) or numbers[-1] >= available:
        raise AggdecError(
            f"{option} {text}: give layers of the checkpoint, which are 0 to {available - 1}, each once and in "
            "ascending order, separated by commas"
        )
    return numbers


def shrink_file(checkpoint: Path, output: Path, keep: Mapping[str, str | None]) -> str:
    """Shrink a checkpoint into a file; returns a line with the old and new numbers of layers.

    Raises:
        AggdecError: the checkpoint cannot be read, has no such layers, or would be overwritten.
    """
    state, shrunk = rewrite(checkpoint, output, lambda state: shrink(state, keep))
    before, after = layer_counts(state["model"]), layer_counts(shrunk["model"])
    return f"{output}: {', '.join(f'{side} {after[side]} of {before[side]} layers' for side in SIDES)}"


def shrink(state: Mapping[str, Any], keep: Mapping[str, str | None]) -> dict[str, Any]:
    """A checkpoint with some of another one's layers, ready to decode and to be trained further.

    The recorded numbers of layers are changed as well. The state of the deep model's training (optimizer, progress,
    averages) is dropped.

    Args:
        state: the deep model's checkpoint, which is not changed.
        keep: for `encoder` and `decoder` the layers, as `read_layers` reads them; None for all.

    Raises:
        AggdecError: there are no such layers, or the model is no Transformer encoder-decoder.
    """
    weights: Mapping[str, Tensor] = state["model"]
    counts = layer_counts(weights)
    if not all(counts.values()):
        raise AggdecError("no Transformer encoder-decoder: it has no encoder.layers.0 or no decoder.layers.0")
    if keep.get("encoder") is not None and "encoder_fingerprint" in weights:
        raise AggdecError(
            "--encoder-layers-to-keep: this is a drafter, whose encoder is its verifier's: shrink the verifier, and "
            "train a drafter for it"
        )
    kept: dict[str, Sequence[int]] = {side: range(count) for side, count in counts.items()}
    for side, text in keep.items():
        if text is not None:
            kept[side] = read_layers(text, f"--{side}-layers-to-keep", counts[side])
    shrunk = without_training(state)
    shrunk |= {"model": _renumbered(weights, kept), "args": _with_depth(state.get("args"), kept)}
    if state.get("cfg") is not None:
        shrunk["cfg"] = {**state["cfg"], "model": _with_depth(state["cfg"]["model"], kept)}
    return shrunk


def _renumbered(weights: Mapping[str, Tensor], kept: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    places = {side: {old: new for new, old in enumerate(layers)} for side, layers in kept.items()}
    result = {}
    for name, value in weights.items():
        match = _LAYER.match(name)
        if match is None:
            result[name] = value
        elif int(match[2]) in places[match[1]]:
            result[f"{match[1]}.layers.{places[match[1]][int(match[2])]}.{name[match.end() :]}"] = value
    return result


def _with_depth(options: Any, kept: Mapping[str, Sequence[int]]) -> Any:
    """A model's options, flat or in groups `encoder` and `decoder`, with the number of layers that are kept."""
    if options is None:
        return None
    if isinstance(options, Namespace):
        return Namespace(**_with_depth(vars(options), kept))
    changed = dict(options)
    for side, layers in kept.items():
        depth = {"layers": len(layers), "layers_to_keep": None}
        group = changed.get(side)
        if isinstance(group, Mapping):
            changed[side] = {**group, **depth}
        for name, value in depth.items():
            if not isinstance(group, Mapping) or f"{side}_{name}" in changed:
                changed[f"{side}_{name}"] = value
    return changed
