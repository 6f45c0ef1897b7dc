"""Engines of several models: kept, made anew where a model has changed, and left to fairseq where there is none."""

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel

from fairseq_aggdec.engine.engines import Engines
from tests.random_models import dictionary, model_of_shape, random_batch

WORDS = dictionary(30)
BATCH = random_batch(1, WORDS, [3, 6, 1])["net_input"]


def model(shape: str = "post-norm sinusoidal") -> FairseqEncoderDecoderModel:
    return model_of_shape(shape, 1, WORDS, WORDS)


def test_an_engine_is_made_once() -> None:
    engines, first, second = Engines(), model(), model()
    engine = engines.decoder(first.decoder)
    assert engine is not None
    assert engines.decoder(first.decoder) is engine
    assert engines.decoder(second.decoder) is not engine
    engines.clear()
    assert engines.decoder(first.decoder) is not engine


def test_a_model_that_has_moved_gets_another() -> None:
    """To another precision, as to another device: what is computed with is the model's new weights."""
    engines, moving = Engines(), model()
    engine, before = engines.decoder(moving.decoder), engines.encode(moving, BATCH)
    moving.double()
    assert engines.decoder(moving.decoder) is not engine
    after = engines.encode(moving, BATCH)
    assert (before["encoder_out"][0].dtype, after["encoder_out"][0].dtype) == (torch.float32, torch.float64)
    is_read = ~before["encoder_padding_mask"][0].T
    found, expected = before["encoder_out"][0].double()[is_read], after["encoder_out"][0][is_read]
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("shape", ["post-norm sinusoidal", "cross-self-attention", "lightweight convolutions"])
def test_encodings_are_fairseqs(shape: str) -> None:
    """Also where there is no engine."""
    some = model(shape)
    found, expected = Engines().encode(some, BATCH), some.encoder.forward_torchscript(BATCH)
    is_read = ~expected["encoder_padding_mask"][0].T
    for mine, theirs in zip(found["encoder_out"], expected["encoder_out"], strict=True):
        torch.testing.assert_close(mine[is_read], theirs[is_read], atol=1e-5, rtol=1e-5)
