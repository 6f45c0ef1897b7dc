"""Frozen weights that are saved with exactly the values with which they were loaded."""

from typing import Any

from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_aggdec.compat.training import frozen_names
from fairseq_aggdec.errors import AggdecError


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
