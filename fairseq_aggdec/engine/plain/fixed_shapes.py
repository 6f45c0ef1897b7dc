"""Shapes at which a token's result in bfloat16 does not depend, to the last bit, on the other tokens of the batch.

With another number of rows a product or an attention adds the same numbers in another order, rounds differently, and
sooner or later chooses another token: block verification would differ from one-token decoding. On x86 with PyTorch 2.13
the following do not depend on the other rows or on their number:

* products with weights prepacked by oneDNN, from two rows on (for a single row long inputs are added in parts); on
  processors with AMX long inputs are added in parts from 36 rows on, so that at most 32 rows are multiplied at once;
* `scaled_dot_product_attention` at multiples of 4 queries and of 16 keys, with any number of hidden keys behind the
  visible ones. Hidden keys before them change the result, so every sentence begins at position 0;
* normalisation over the last dimension, which goes row by row.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

_ROW_MULTIPLE = 4
_KEY_MULTIPLE = 16
AMX_MAX_ROWS = 32


def exact_rows(rows: int) -> int:
    """Round a number of rows or of queries up to a fixed shape."""
    return -(-rows // _ROW_MULTIPLE) * _ROW_MULTIPLE


@cache
def has_amx() -> bool:
    """Whether the processor has AMX, which limits products in bf16 to `AMX_MAX_ROWS` rows."""
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)())


def exact_keys(keys: int) -> int:
    """Round a number of keys up to a fixed shape; the additional keys are hidden."""
    return -(-keys // _KEY_MULTIPLE) * _KEY_MULTIPLE


def aligned(tokens: Tensor, pad: int) -> Tensor:
    """Move padding behind the sentences: B x S, padded on either side -> B x S', padded on the right (`exact_keys`)."""
    hidden = tokens.eq(pad)
    if bool(hidden.any()):
        tokens = tokens.gather(1, hidden.byte().argsort(dim=1, stable=True))
    return F.pad(tokens, (0, exact_keys(tokens.size(1)) - tokens.size(1)), value=pad)
