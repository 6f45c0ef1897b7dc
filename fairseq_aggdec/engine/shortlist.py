"""A shorter output vocabulary for an ordinary drafter; the verifier decides, so outputs stay the same.

Not used on a GPU, where graphs contain the whole projection.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_aggdec.engine.choose_backend import runs_async
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.supported_models import STOCK_DECODERS

LARGE = 100_000
"""symbols of a vocabulary that is worth a shortlist"""
FIRST = 32_000
"""symbols of a new shortlist: the first ones, which in most dictionaries are the more frequent ones"""


def shortlisted(decoder: Any) -> int | None:
    """How many symbols an ordinary drafter scores; None: all of them."""
    # None: adaptive softmax
    projection = decoder.output_projection if type(decoder) in STOCK_DECODERS else None
    if (
        projection is None
        or projection.bias is not None
        or len(projection.weight) <= LARGE
    ):
        return None
    return None if runs_async(projection.weight.device) else FIRST


class Shortlist:
    """The first symbols, and those that the verifier has written.

    NLLB has 256,000 symbols, nine tenths of a small drafter's weights, and punctuation is among the last.
    """

    def __init__(self, engine: Any, decoder: Any) -> None:
        """`engine`: of `decoder`; only a `Decoder` can restrict its vocabulary."""
        self._applies = isinstance(engine, Decoder) and shortlisted(decoder) is not None
        self._engine = engine
        self._decoder = decoder
        self._symbols = set(range(FIRST))
        # the symbols that the engine scores, in ascending order
        self._scored = torch.empty(0, dtype=torch.long)

    def see(self, texts: Sequence[Sequence[int]]) -> None:
        """Add new symbols of the verifier's output; the engine's vocabulary is replaced once enough are new."""
        if not self._applies:
            return
        self._symbols.update(*texts)
        known = len(self._scored)
        # copying the weights costs some steps: less and less often
        if known == 0 or len(self._symbols) - known > 20 + (known - FIRST) // 8:
            self._scored = torch.tensor(sorted(self._symbols))
            weight = self._decoder.output_projection.weight.detach()
            part = nn.Linear(
                weight.size(1), len(self._scored), bias=False, device="meta"
            )
            part.weight = nn.Parameter(weight[self._scored], requires_grad=False)
            self._engine.parts.vocabulary = self._engine.backend.fused(part)

    def symbols(self, places: Tensor) -> Tensor:
        """The symbols of these indices into the engine's vocabulary, any shape."""
        return self._scored[places] if self._applies else places
