"""Weights that a training does not touch, saved as exactly as they were loaded."""

from typing import Any

from fairseq.models import BaseFairseqModel
from torch import Tensor


class ExactFrozenWeights(BaseFairseqModel):
    """Mixed into a model before fairseq's own class; a training in half precision rounds weights, frozen ones too."""

    exact_weights: dict[str, Tensor]
    """see `keep_exact`; the model's constructor sets it to an empty dictionary"""

    def keep_exact(self) -> None:
        """Save the frozen weights as they are now, whatever precision the training turns the model to."""
        names = {name for name, weight in self.named_parameters(remove_duplicate=False) if not weight.requires_grad}
        self.exact_weights = {name: value.cpu().clone() for name, value in self.state_dict().items() if name in names}

    def state_dict(self, *args: Any, prefix: str = "", **options: Any) -> dict[str, Any]:
        """PyTorch's, with the frozen weights of `keep_exact`."""
        state = super().state_dict(*args, prefix=prefix, **options)
        state.update({prefix + name: weight for name, weight in self.exact_weights.items()})
        return state

    def load_state_dict(self, state_dict: Any, *args: Any, **options: Any) -> Any:
        """fairseq's; a resumed training goes on saving the frozen weights of its checkpoint."""
        self.exact_weights = {name: state_dict[name].cpu().clone() for name in self.exact_weights if name in state_dict}
        return super().load_state_dict(state_dict, *args, **options)
