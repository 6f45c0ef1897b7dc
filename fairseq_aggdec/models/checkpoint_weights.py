"""Weights out of another model's checkpoint: taking them, and saving frozen ones with exactly their values."""

import re
from typing import Any

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from fairseq_aggdec.compat.training import frozen_names
from fairseq_aggdec.errors import AggdecError

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


class ExactFrozenWeights(BaseFairseqModel):
    """Mixin, named before fairseq's model: training in half precision would round frozen weights, too."""

    exact_weights: dict[str, Tensor]
    """the values to save, by name; the model's constructor sets it to an empty dictionary"""
    origin: str = ""
    """the option that named their checkpoint, with its value, for messages"""
    instead_of_finetuning: str = ""
    """further advice in the message about another checkpoint's frozen weights"""

    def save_exactly(self, origin: str) -> None:
        """Save the frozen weights with their present values from now on, whatever precision the training uses."""
        self.origin = origin
        names = frozen_names(self)
        self.exact_weights = {name: value.cpu().clone() for name, value in self.state_dict().items() if name in names}

    def state_dict(self, *args: Any, prefix: str = "", **options: Any) -> dict[str, Any]:
        """As PyTorch's, with the values from `save_exactly`."""
        state = super().state_dict(*args, prefix=prefix, **options)
        state.update({prefix + name: weight for name, weight in self.exact_weights.items()})
        return state

    def load_state_dict(self, state_dict: Any, *args: Any, **options: Any) -> Any:
        """As fairseq's; raises `AggdecError` for another frozen weight: that training began with another base model."""
        for name, weight in self.exact_weights.items():
            theirs = state_dict.get(name)
            if theirs is not None and theirs.shape == weight.shape and not theirs.cpu().to(weight.dtype).equal(weight):
                raise AggdecError(
                    f"the checkpoint of --restore-file or --finetune-from-model has another {name} than {self.origin}, "
                    "where this weight is frozen: give another --save-dir for a new training"
                    f"{self.instead_of_finetuning}"
                )
        return super().load_state_dict(state_dict, *args, **options)
