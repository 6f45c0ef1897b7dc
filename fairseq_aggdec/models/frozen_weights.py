"""Weights that are frozen in a training, saved with exactly the values that they were loaded with."""

from typing import Any

from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_aggdec.compat.training import frozen_names


class ExactFrozenWeights(BaseFairseqModel):
    """A base class to name before fairseq's: training in half precision rounds all weights, frozen ones too."""

    exact_weights: dict[str, Tensor]
    """the values to save, by name; the model's constructor sets it to an empty dictionary"""

    def keep_exact(self) -> None:
        """From now on save the frozen weights with their present values, whatever precision the training uses."""
        names = frozen_names(self)
        self.exact_weights = {name: value.cpu().clone() for name, value in self.state_dict().items() if name in names}

    def state_dict(self, *args: Any, prefix: str = "", **options: Any) -> dict[str, Any]:
        """As PyTorch's, with the values that `keep_exact` has kept."""
        state = super().state_dict(*args, prefix=prefix, **options)
        state.update({prefix + name: weight for name, weight in self.exact_weights.items()})
        return state

    def load_state_dict(self, state_dict: Any, *args: Any, **options: Any) -> Any:
        """As fairseq's; a resumed training goes on saving the frozen weights of its checkpoint."""
        self.exact_weights = {name: state_dict[name].cpu().clone() for name in self.exact_weights if name in state_dict}
        return super().load_state_dict(state_dict, *args, **options)
