"""fairseq's Transformer on the weights of another checkpoint, which it may keep frozen, with exactly their values."""

from argparse import ArgumentParser
from typing import Any

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import BaseFairseqModel, FairseqDecoder, FairseqEncoder
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from fairseq.tasks import FairseqTask
from torch import Tensor

from fairseq_aggdec.compat.training import frozen_names
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.architectures import Options


class TransformerOnCheckpoint(TransformerModelBase):
    """What models that extend a trained Transformer have in common.

    Training in half precision would round frozen weights, too, so their values are kept beside the model.
    """

    config: type[TransformerConfig]
    """the model's options"""

    def __init__(
        self, cfg: TransformerConfig, encoder: FairseqEncoder, decoder: FairseqDecoder
    ) -> None:
        super().__init__(cfg, encoder, decoder)
        self.exact_weights: dict[str, Tensor] = {}  # the values to save, by name
        self.origin = ""  # the option that named their checkpoint, with its value

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add the options; their defaults come from the architecture."""
        gen_parser_from_dataclass(
            parser, cls.config(), delete_default=True, with_prefix=""
        )

    @classmethod
    def build_model(cls, cfg: Options, task: FairseqTask) -> BaseFairseqModel:
        """Build from fairseq's options, flat or in groups."""
        return super().build_model(cls.config.from_namespace(cfg), task)

    def save_exactly(self, origin: str) -> None:
        """Save the frozen weights with their present values from now on, whatever precision the training uses."""
        self.origin = origin
        names = frozen_names(self)
        self.exact_weights = {
            name: value.cpu().clone()
            for name, value in self.state_dict().items()
            if name in names
        }

    def state_dict(
        self, *args: Any, prefix: str = "", **options: Any
    ) -> dict[str, Tensor]:
        """As PyTorch's, with the values from `save_exactly`."""
        state = super().state_dict(*args, prefix=prefix, **options)
        state.update(
            {prefix + name: weight for name, weight in self.exact_weights.items()}
        )
        return state

    def load_state_dict(
        self, state_dict: dict[str, Tensor], *args: Any, **options: Any
    ) -> Any:
        """As fairseq's; raises `AggdecError` for another frozen weight: that training began with another base model."""
        for name, weight in self.exact_weights.items():
            theirs = state_dict.get(name)
            if (
                theirs is not None
                and theirs.shape == weight.shape
                and not theirs.cpu().to(weight.dtype).equal(weight)
            ):
                raise AggdecError(
                    f"the checkpoint of --restore-file or --finetune-from-model has another {name} than {self.origin}, "
                    "where this weight is frozen: give another --save-dir for a new training, and for a drafter "
                    "--decoder-from in place of --finetune-from-model"
                )
        return super().load_state_dict(state_dict, *args, **options)
