"""What a backend is: it computes one model's products, layers and choices on a device, in an arithmetic."""

from collections.abc import Callable
from typing import Any, Protocol

from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor, nn

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.plain.choice import Choice
from fairseq_aggdec.engine.plain.layers import Positions
from fairseq_aggdec.engine.plain.products import Activation, Product
from fairseq_aggdec.scheduling.costs import Processor


class Backend(Protocol):
    """Answers about a device and an arithmetic, and functions that build the parts of one model's passes.

    `PlainBackend` is the reference. Others inherit from it, and replace what they have faster.
    """

    arithmetic: Arithmetic
    reads_wait: bool
    """whether the host waits for the device when it reads a number"""
    padding_is_free: bool
    """whether padding costs a pass no time, as on a GPU, where a hundred tokens take the time of one"""
    has_own_threads: bool
    """whether passes leave PyTorch's threads idle"""
    pass_cost: Processor | None
    """overheads of a pass of these layers on a CPU; None on a GPU, where passes are measured"""
    choice: Choice
    """finds the highest scores"""

    def product(self, weight: Tensor, bias: Tensor | None, activation: Activation | None = None) -> Product:
        """A linear layer with a weight, O x I, and a bias, O. A model may have any activation, and biased logits."""

    def fused(
        self, *projections: nn.Linear, activation: Activation | None = None, order: Tensor | None = None
    ) -> Product:
        """One product for several projections of the same input, see `fused_weights`."""

    def decoder_layers(self, decoder: TransformerDecoderBase) -> Any:
        """A decoder's layers, with the methods of `DecoderLayers`."""

    def encoder_layers(self, encoder: TransformerEncoderBase) -> Callable[[Tensor, Tensor | None], Tensor]:
        """An encoder's layers, called as `EncoderLayers`."""

    def embedding(
        self, decoder: TransformerDecoderBase, positions: Positions | None, extra_embeddings: Tensor | None
    ) -> Callable[[Tensor, Tensor | range, int], Tensor] | None:
        """The input of a decoder's first layer in one operation, as `native.layers.Embedding`; None: in several.

        `positions`: rows of any table, learned or computed; the decoder's own input table may differ from its logits'.
        """

    def decoder_kernels(
        self, decoder: TransformerDecoderBase, positions: Positions | None, extra_embeddings: Tensor | None
    ) -> Any:
        """The passes of a decoder in a few kernels, `cuda.backend.DecoderKernels`; None where there are none."""

    def drop_kernels(self) -> bool:
        """Compute without kernels from now on, since they fail; False where there are none."""

    def chain(
        self, before: Tensor, after: Tensor, here: Tensor, candidates: Tensor, scores: Tensor, last: Tensor
    ) -> Tensor:
        """The best candidate of each position, given the token chosen before it (`TransitionTables`).

        Args:
            before: V x H, the table of A embed(a).
            after: V x H, the table of W^T output(b).
            here: B x k x H, B features + bias of each position.
            candidates: B x k x C tokens.
            scores: B x k x C, the scores of the candidates without transitions.
            last: B, the token before each block.

        Returns:
            B x k tokens.
        """
