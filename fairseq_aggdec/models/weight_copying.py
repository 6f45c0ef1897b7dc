"""Taking weights out of another model's checkpoint."""

import re
from typing import Any

import torch
from torch import Tensor, nn

# entries of a Transformer's state: version numbers, position tables and copies
_NOT_WEIGHTS = re.compile(
    r"(^|\.)version$|embed_positions\.(_float_tensor|weights)$"
    r"|(in_proj|out_proj|fc1|fc2)_(weight|bias)$"  # copies that fairseq 0.12.2 keeps in its encoder layers
)


def weights_of(state: dict[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    """The weights of a model's state under a prefix of their names, by the rest of their names."""
    names = ((name, name.removeprefix(prefix)) for name in state if name.startswith(prefix))
    return {short: state[name] for name, short in names if _NOT_WEIGHTS.search(short) is None}


@torch.no_grad()
def copy_weights(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Write weights into the module's weights of the same names and shapes."""
    own = module.state_dict()
    for name, value in weights.items():
        own[name].copy_(value)


def different_shapes(part: str, name: str, theirs: Tensor, ours: Tensor, model: Any, called: str) -> str:
    """The message for a weight of `encoder` or `decoder` with two shapes; `called`: the model's name in the message."""
    sizes = [" x ".join(map(str, value.shape)) for value in (theirs, ours)]
    text = f"{part}.{name} is {sizes[0]} there and {sizes[1]} in {called}"
    if name in ("embed_tokens.weight", "output_projection.weight") and theirs.size(0) != ours.size(0):
        symbols = len(getattr(model, part).dictionary)
        side = "source" if part == "encoder" else "target"
        return (
            f"{text}, whose {side} dictionary (in the data folder) has {symbols} symbols: use the verifier's data-bin"
        )
    return f"{text}: give {called} the {part} options of that checkpoint"
