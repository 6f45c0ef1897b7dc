"""`aggdec shrink`: a model with some decoder layers of another one (papers/002 §4.4: 12+2 out of BART-large).

fairseq can prune layers while it loads a model (`--decoder-layers-to-keep`, for LayerDrop), but silently ignores layers
that do not exist, and drops the whole encoder where only the decoder's layers are named.
"""

import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.compat.checkpoints import read_checkpoint, without_training
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import refuse_overwriting, written_whole

SIDES = ("encoder", "decoder")
State = dict[str, Any]
_LAYER = re.compile(r"^(encoder|decoder)\.layers\.(\d+)\.")


def layer_counts(weights: Iterable[str]) -> dict[str, int]:
    """How many layers each side has, by the names of a model's weights."""
    counts = dict.fromkeys(SIDES, 0)
    for match in filter(None, map(_LAYER.match, weights)):
        counts[match[1]] = max(counts[match[1]], int(match[2]) + 1)
    return counts


def read_layers(text: str, available: int) -> list[int]:
    """The layers of --decoder-layers-to-keep: numbers from 0 below `available`, separated by commas, ascending.

    Raises:
        AggdecError: something is no number, too large, named twice or out of order.
    """
    parts = [part.strip() for part in text.split(",")]
    numbers = [int(part) for part in parts if re.fullmatch(r"\d+", part, re.ASCII)]
    if (
        len(numbers) < len(parts)
        or numbers != sorted(set(numbers))
        or numbers[-1] >= available
    ):
        raise AggdecError(
            f"--decoder-layers-to-keep {text}: give layers of the checkpoint, which are 0 to {available - 1}, each "
            "once and in ascending order, separated by commas"
        )
    return numbers


def rewrite(
    checkpoint: Path, output: Path, change: Callable[[State], State]
) -> tuple[State, State]:
    """Write what `change` makes of a checkpoint; returns the old and the new state.

    Raises `AggdecError` where the checkpoint cannot be read or changed, or would be overwritten.
    """
    refuse_overwriting(output, [checkpoint])
    state = read_checkpoint(checkpoint)
    try:
        changed = change(state)
    except AggdecError as error:
        raise AggdecError(f"{checkpoint}: {error}") from None
    with written_whole(output) as partial:
        torch.save(changed, partial)
    return state, changed


def shrink_file(checkpoint: Path, output: Path, keep: str) -> str:
    """Shrink a checkpoint into a file; returns a line with the old and the new count of layers.

    Raises:
        AggdecError: the checkpoint cannot be read, has no such layers, or would be overwritten.
    """
    state, shrunk = rewrite(checkpoint, output, lambda state: shrink(state, keep))
    before, after = (layer_counts(one["model"])["decoder"] for one in (state, shrunk))
    return f"{output}: {after} of {before} decoder layers"


def shrink(state: Mapping[str, Any], keep: str) -> dict[str, Any]:
    """A checkpoint with some of another one's decoder layers, ready to decode and to be trained further.

    The recorded count of layers is changed as well. The state of the deep model's training (optimizer, progress,
    averages) is dropped.

    Args:
        state: the deep model's checkpoint, which is not changed.
        keep: the layers, as `read_layers` reads them.

    Raises:
        AggdecError: there are no such layers, or the model is no Transformer encoder-decoder.
    """
    weights: Mapping[str, Tensor] = state["model"]
    counts = layer_counts(weights)
    if not all(counts.values()):
        raise AggdecError(
            "no Transformer encoder-decoder: it has no encoder.layers.0 or no decoder.layers.0"
        )
    kept = read_layers(keep, counts["decoder"])
    shrunk = without_training(state)
    shrunk |= {
        "model": _renumbered(weights, kept),
        "args": _with_depth(state.get("args"), len(kept)),
    }
    if state.get("cfg") is not None:
        shrunk["cfg"] = {
            **state["cfg"],
            "model": _with_depth(state["cfg"]["model"], len(kept)),
        }
    return shrunk


def _renumbered(weights: Mapping[str, Tensor], kept: list[int]) -> dict[str, Tensor]:
    result = {}
    for name, value in weights.items():
        match = _LAYER.match(name)
        if match is None or match[1] != "decoder":
            result[name] = value
        elif int(match[2]) in kept:
            result[
                f"decoder.layers.{kept.index(int(match[2]))}.{name[match.end() :]}"
            ] = value
    return result


def _with_depth(options: Any, layers: int) -> Any:
    """A model's options, flat or in groups `encoder` and `decoder`, with this many decoder layers."""
    if options is None:
        return None
    if isinstance(options, Namespace):
        return Namespace(**_with_depth(vars(options), layers))
    changed = dict(options)
    group = changed.get("decoder")
    depth = {"layers": layers, "layers_to_keep": None}
    if isinstance(group, Mapping):
        changed["decoder"] = {**group, **depth}
    for name, value in depth.items():
        if not isinstance(group, Mapping) or f"decoder_{name}" in changed:
            changed[f"decoder_{name}"] = value
    return changed
