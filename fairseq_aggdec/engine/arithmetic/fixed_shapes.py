"""Shapes at which a token's result in bfloat16 does not depend, to the last bit, on what is computed together with it.

A product or an attention over other numbers of rows adds up the same numbers in another order, rounds otherwise, and
sooner or later chooses another token: block verification would differ from one-token decoding. On x86 with PyTorch 2.13
these do not depend on the other rows nor on their number:

* products with weights prepacked by oneDNN, from two rows on (of a single row, long inputs are added up in parts); on
  processors with AMX, long inputs are added up in parts from 36 rows on, so that 32 are multiplied at once;
* `scaled_dot_product_attention` at multiples of 4 queries and of 16 keys, whatever the mask hides behind the keys that
  are seen. What stands before them matters: so every sentence begins at position 0;
* normalisation over the last dimension, which goes row by row.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

_ROWS = 4
_KEYS = 16
ROWS_OF_AMX = 32


def exact_rows(rows: int) -> int:
    """The number of rows, or of queries, to compute where `rows` are wanted."""
    return -(-rows // _ROWS) * _ROWS


@cache
def has_amx() -> bool:
    """Whether the processor has AMX, and its products of bf16 are of `ROWS_OF_AMX` at most."""
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)())


def exact_keys(keys: int) -> int:
    """The number of keys, the last ones hidden, to attend to where `keys` are to be seen."""
    return -(-keys // _KEYS) * _KEYS


def aligned(tokens: Tensor, pad: int) -> Tensor:
    """Sentences that begin at position 0, whatever batch they came in.

    B x S, padded on either side -> B x S', padded behind, S' from `exact_keys`.
    """
    hidden = tokens.eq(pad)
    if bool(hidden.any()):
        tokens = tokens.gather(1, hidden.byte().argsort(dim=1, stable=True))
    return F.pad(tokens, (0, exact_keys(tokens.size(1)) - tokens.size(1)), value=pad)
