"""An engine is made once, and used only where its numbers are those of fairseq's own code."""

import logging
from typing import Any

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import nn

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.supported_models import (
    unsupported_decoder,
    unsupported_encoder,
)
from fairseq_aggdec.errors import AggdecError
from tests.support.random_models import (
    ENGINE_SHAPES,
    dictionary,
    model_of_shape,
    random_batch,
)

pytestmark = pytest.mark.usefixtures("either_engine")
WORDS = dictionary(30)
BATCH = random_batch(1, WORDS, [3, 6, 1])["net_input"]


def model(
    shape: str = "post-norm sinusoidal", **options: Any
) -> FairseqEncoderDecoderModel:
    return model_of_shape(shape, 1, WORDS, **options)


def test_an_engine_is_made_once() -> None:
    engines = Engines()
    first = model()
    second = model()
    engine = engines.decoder(first.decoder)
    assert engine is not None
    assert engines.decoder(first.decoder) is engine
    assert engines.decoder(second.decoder) is not engine
    engines.clear()
    assert engines.decoder(first.decoder) is not engine


@pytest.mark.parametrize(
    "shape, kind",
    [
        *((shape, torch.float32) for shape in ENGINE_SHAPES),
        *(
            (shape, kind)
            for shape in (ENGINE_SHAPES[0], "T5")
            for kind in (torch.float64, torch.float16, torch.bfloat16)
        ),
    ],
)
def test_engines_of_every_shape_and_type_are_trusted(
    shape: str, kind: torch.dtype
) -> None:
    some = model(shape).to(kind)
    engines = Engines()
    assert engines.unsupported(some.decoder) is None
    engines.encode(some, BATCH)
    assert engines.encoders_made == 1


@pytest.mark.parametrize("shape", [ENGINE_SHAPES[0], "swish, biased logits"])
@torch.no_grad()
def test_a_decoder_that_computes_a_little_differently_is_left_to_fairseq(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose bias rules a symbol out, too."""
    some = model(shape)
    if some.decoder.output_projection.bias is not None:
        some.decoder.output_projection.bias[0] = -1e4
    # as of a derived class
    monkeypatch.setattr(
        TransformerDecoderLayerBase,
        "residual_connection",
        lambda self, x, residual: residual + 1.01 * x,
    )
    reason = Engines().unsupported(some.decoder) or ""
    assert reason.startswith("log-probabilities that differ by 0.")
    with pytest.raises(
        AggdecError,
        match=r"--bit-exact needs this plugin's (engine, .* that differ by|kernels)",
    ):
        Engines(Arithmetic(bit_exact=True)).decoder(some.decoder)


@pytest.mark.parametrize(
    "method, part",
    [
        ("verify", "tokens"),
        ("verify", "log_probs"),
        ("verify", "drafted"),
        ("verify_tree", "names"),
    ],
)
def test_an_engine_that_chooses_or_reads_trees_wrongly_is_not_trusted(
    method: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = getattr(Decoder, method)

    def in_another_order(self: Decoder, *inputs: Any, **options: Any) -> Any:
        found = right(self, *inputs, **options)
        chunks = [
            chunk._replace(**{part: getattr(chunk, part).roll(1, 0)})
            for chunk in (found if tree else [found])
        ]
        return chunks if tree else chunks[0]

    tree = method == "verify_tree"
    monkeypatch.setattr(Decoder, method, in_another_order)
    reason = Engines().unsupported(model().decoder) or ""
    assert reason.startswith("log-probabilities of chosen tokens that differ by ")


def test_an_encoder_that_computes_a_little_differently_is_left_to_fairseq(
    caplog: pytest.LogCaptureFixture,
) -> None:
    some = model()
    engines = Engines()
    some.encoder.layers[0].self_attn.add_zero_attn = True
    with caplog.at_level(logging.WARNING):
        found = engines.encode(some, BATCH)
    assert torch.equal(
        found["encoder_out"][0],
        some.encoder.forward_torchscript(BATCH)["encoder_out"][0],
    )
    assert "fairseq's own code encodes" in caplog.text
    assert "encoder states that differ by 0." in caplog.text
    assert engines.encoders_made == 0


def test_the_model_and_random_numbers_stay_as_they_were() -> None:
    some = model(dropout=0.5).train()
    some.decoder.layers[0].eval()
    modes = [part.training for part in some.modules()]
    before = torch.random.get_rng_state()
    Engines().encode(some, BATCH)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert [part.training for part in some.modules()] == modes
    assert all(weight.grad is None for weight in some.parameters())


def test_parts_that_may_differ_by_less_than_the_self_check_sees_are_refused() -> None:
    class Windowed(type(model().decoder.layers[0].self_attn)):  # type: ignore[misc]
        pass

    for part, reason in (
        ("decoder", unsupported_decoder),
        ("encoder", unsupported_encoder),
    ):
        stack = getattr(model(), part)
        stack.layers[0].self_attn.__class__ = Windowed
        assert reason(stack) == "layers.0.self_attn of type Windowed"
        stack = getattr(model(), part)
        stack.layers.append(nn.Identity())
        assert reason(stack) == "layers.2 of type Identity"
        stack = getattr(model(), part)
        stack.layers[1].residual_connection = lambda x, residual: x + residual
        assert reason(stack) == "layers.1 with another residual_connection"
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(
                nn.modules.module._global_forward_hooks,
                0,
                lambda part, inputs, output: None,
            )
            assert reason(getattr(model(), part)) == "hooks on all modules"
    some = model()
    some.decoder.output_layer = lambda features: features
    for layer in some.decoder.layers:
        layer.self_attn.__class__ = Windowed
    assert unsupported_decoder(some.decoder) == (
        "TransformerDecoderBase with another output_layer; layers.0.self_attn and 1 more of type Windowed"
    ), "all reasons, each once"
    scaled = model(scale_resids=True)
    assert unsupported_decoder(scaled.decoder) == "layers with w_resid"
    without = model(no_cross_attention=True, cross_self_attention=False)
    assert unsupported_decoder(without.decoder) == "no attention to the encoder"
