"""The engine's encoder against fairseq's."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.engine.encoder import Encoder
from tests.support.random_models import ENGINE_SHAPES, dictionary, model_of_shape, random_batch
from tests.support.scripted_decoding import examples

pytestmark = pytest.mark.usefixtures("either_engine")

VOCABULARY = dictionary(12)


def assert_same_text(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    """What padding is encoded as is nobody's business, but it has to be a number."""
    seen = ~expected["encoder_padding_mask"][0].T
    states = actual["encoder_out"][0]
    torch.testing.assert_close(states[seen], expected["encoder_out"][0][seen], atol=1e-5, rtol=1e-5)
    assert states.isfinite().all()


@pytest.mark.parametrize("shape", ENGINE_SHAPES)
@examples(3)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 12), min_size=1, max_size=4), st.booleans())
@torch.no_grad()
def test_it_encodes_as_fairseq_does(shape: str, seed: int, lengths: list[int], left_pad: bool) -> None:
    encoder = model_of_shape(shape, seed, VOCABULARY, VOCABULARY).encoder
    net_input = random_batch(seed, VOCABULARY, lengths, left_pad)["net_input"]
    expected = encoder(**net_input)
    actual = Encoder(encoder)(net_input["src_tokens"])
    for part in ("encoder_embedding", "encoder_padding_mask"):
        torch.testing.assert_close(actual[part][0], expected[part][0], atol=1e-5, rtol=1e-5)
    assert_same_text(actual, expected)


@torch.no_grad()
def test_sinusoidal_positions_go_on_behind_those_computed_ahead() -> None:
    encoder = model_of_shape("post-norm sinusoidal", 2, VOCABULARY, VOCABULARY).encoder
    engine = Encoder(encoder)
    for lengths in ([200], [3], [90, 260]):
        net_input = random_batch(3, VOCABULARY, lengths)["net_input"]
        assert_same_text(engine(net_input["src_tokens"]), encoder(**net_input))
