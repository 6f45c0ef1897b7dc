"""Weights that are frozen in a training, saved with exactly the values that they were loaded with."""

from typing import Any

from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_aggdec.compat.training import frozen_names
from fairseq_aggdec.errors import AggdecError


class ExactFrozenWeights(BaseFairseqModel):
    """A base class to name before fairseq's: training in half precision rounds all weights, frozen ones too."""

    exact_weights: dict[str, Tensor]
    """the values to save, by name; the model's constructor sets it to an empty dictionary"""
    exact_like: str = ""
    """the option that they come from, with its value"""
    instead_of_finetuning: str = ""
    """what the message about another checkpoint's frozen weights says further"""

    def keep_exact(self, origin: str) -> None:
        """From now on save the frozen weights with their present values, whatever precision the training uses.

        `origin` is the option that they come from, with its value, for messages.
        """
        self.exact_like = origin
        names = frozen_names(self)
        self.exact_weights = {name: value.cpu().clone() for name, value in self.state_dict().items() if name in names}

    def state_dict(self, *args: Any, prefix: str = "", **options: Any) -> dict[str, Any]:
        """As PyTorch's, with the values that `keep_exact` has kept."""
        state = super().state_dict(*args, prefix=prefix, **options)
        state.update({prefix + name: weight for name, weight in self.exact_weights.items()})
        return state

    def load_state_dict(self, state_dict: Any, *args: Any, **options: Any) -> Any:
        """As fairseq's.

        Raises:
            AggdecError: the checkpoint has other frozen weights than those that an option asks for, whose place they
                would take: it is of a training that began with another model.
        """
        for name, weight in self.exact_weights.items():
            theirs = state_dict.get(name)
            if theirs is not None and theirs.shape == weight.shape and not theirs.cpu().to(weight.dtype).equal(weight):
                raise AggdecError(
                    f"the checkpoint to go on from (--restore-file, --finetune-from-model) has another {name} than "
                    f"{self.exact_like}, which is to stay as it is: give another --save-dir for a new training"
                    f"{self.instead_of_finetuning}"
                )
        return super().load_state_dict(state_dict, *args, **options)
