"""Options of a drafter that its decoder cannot honour."""

from typing import Any

import pytest

from fairseq_aggdec.errors import AggdecError
from tests.models.drafter_inputs import drafter


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"adaptive_softmax_cutoff": "5,10"}, "--adaptive-softmax-cutoff"),
        ({"block_size": 0}, "--block-size"),
        ({"mask_source_copy": True, "no_token_positional_embeddings": True}, "--mask-source-copy"),
    ],
)
def test_refused_options(changes: dict[str, Any], option: str) -> None:
    with pytest.raises(AggdecError, match=option):
        drafter("causal, post-norm sinusoidal", **changes)
