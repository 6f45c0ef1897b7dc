"""Options of a model with proposal heads that have no meaning."""

from typing import Any

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.blockwise_config import BlockwiseTransformerConfig, refuse_unsupported


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_heads": 1}, "--block-heads 1"),
        ({"head_ffn_embed_dim": -1}, "--head-ffn-embed-dim -1"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(AggdecError, match=message):
        refuse_unsupported(BlockwiseTransformerConfig(**options))
