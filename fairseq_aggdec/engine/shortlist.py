"""The part of a large vocabulary that a drafter looks at; a verifier decides, so that the output stays the same."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.choose_backend import host_waits
from fairseq_aggdec.engine.plain.linear import Product

LARGE = 100_000
"""symbols of a vocabulary that is worth a shortlist"""
FIRST = 32_000
"""symbols of a new shortlist: the first ones, which in most dictionaries are the frequent ones"""


def shortlisted(decoder: Any, arithmetic: Arithmetic) -> int | None:
    """The number of symbols that a drafter looks at; None: all. On a GPU its graphs have the whole projection."""
    projection = getattr(decoder, "output_projection", None)
    if not arithmetic.is_judged or projection is None or projection.bias is not None or hasattr(decoder, "heads"):
        return None
    weight = projection.weight
    return None if len(weight) <= LARGE or host_waits(weight.device) else FIRST


class Shortlist:
    """The first symbols, and those that the verifier has written.

    NLLB has 256,000 symbols, nine tenths of a small drafter's weights, and punctuation comes last.
    """

    def __init__(self, engine: Any, decoder: Any, arithmetic: Arithmetic) -> None:
        """`engine`: of `decoder`, whose `backend` computes."""
        self.product: Product | None = None
        """... x D -> ... x M, the scores of the M symbols; None: there is no shortlist"""
        self._applies = shortlisted(decoder, arithmetic) is not None
        self._engine, self._decoder = engine, decoder
        self._symbols = set(range(FIRST))
        self._numbers = torch.empty(0, dtype=torch.long)  # M, in ascending order

    def see(self, texts: Sequence[Sequence[int]]) -> None:
        """Add what is new in the verifier's output, and renew the product where enough is new."""
        if not self._applies:
            return
        self._symbols.update(*texts)
        known = len(self._numbers)
        # copying the weights costs some steps: less and less often
        if self.product is None or len(self._symbols) - known > 20 + (known - FIRST) // 8:
            self._numbers = torch.tensor(sorted(self._symbols))
            weight = self._decoder.output_projection.weight.detach()
            part = nn.Linear(weight.size(1), len(self._numbers), bias=False, device="meta")
            part.weight = nn.Parameter(weight[self._numbers], requires_grad=False)
            self.product = self._engine.backend.fused(part)

    def symbols(self, numbers: Tensor) -> Tensor:
        """The symbols with these numbers in the shortlist, any shape."""
        return numbers if self.product is None else self._numbers[numbers]
