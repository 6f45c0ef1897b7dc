"""The engine's encoder against fairseq's."""

from typing import Any

import pytest
import torch

from fairseq_aggdec.engine.encoder import Encoder
from tests.support.random_models import dictionary, model_of_shape, random_batch

pytestmark = pytest.mark.usefixtures("either_engine")

VOCABULARY = dictionary(12)


def assert_same_text(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    """What padding is encoded as is nobody's business, but it has to be a number."""
    seen = ~expected["encoder_padding_mask"][0].T
    states = actual["encoder_out"][0]
    torch.testing.assert_close(states[seen], expected["encoder_out"][0][seen], atol=1e-5, rtol=1e-5)
    assert states.isfinite().all()


@torch.no_grad()
def test_sinusoidal_positions_go_on_behind_those_computed_ahead() -> None:
    encoder = model_of_shape("post-norm sinusoidal", 2, VOCABULARY, VOCABULARY).encoder
    engine = Encoder(encoder)
    for lengths in ([200], [3], [90, 260]):
        net_input = random_batch(3, VOCABULARY, lengths)["net_input"]
        assert_same_text(engine(net_input["src_tokens"]), encoder(**net_input))
