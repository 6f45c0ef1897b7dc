"""The engine's encoder of long sources; others are compared with fairseq's by its self-check (test_self_check.py)."""

import pytest
import torch

from fairseq_aggdec.engine.encoder import Encoder
from tests.support.random_models import dictionary, model_of_shape, random_batch

pytestmark = pytest.mark.usefixtures("either_engine")

VOCABULARY = dictionary(12)


@torch.no_grad()
def test_sinusoidal_positions_go_on_behind_those_computed_ahead() -> None:
    encoder = model_of_shape("post-norm sinusoidal", 2, VOCABULARY, VOCABULARY).encoder
    engine = Encoder(encoder)
    for lengths in ([200], [3], [90, 260]):
        net_input = random_batch(3, VOCABULARY, lengths)["net_input"]
        found, expected = engine(net_input["src_tokens"]), encoder(**net_input)
        seen = ~expected["encoder_padding_mask"][0].T
        (states,), (right,) = found["encoder_out"], expected["encoder_out"]
        torch.testing.assert_close(states[seen], right[seen], atol=1e-5, rtol=1e-5)
        assert states.isfinite().all(), "what padding is encoded as is nobody's business, but it has to be a number"
