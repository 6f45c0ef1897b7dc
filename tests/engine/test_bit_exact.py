"""A token's scores have the same bits whatever is computed with it: by the kernels."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import Arithmetic, Precision
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.encoder import Encoder
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.native import library
from fairseq_aggdec.errors import AggdecError
from tests.support.random_models import (
    FALLBACK_SHAPES,
    SHAPES,
    dictionary,
    model_of_shape,
    random_batch,
    random_model,
)
from tests.support.scripted_decoding import scored

WORDS = dictionary(40)
PAD = WORDS.pad()
LENGTHS = [13, 1, 37, 16, 24]
BATCH = random_batch(1, WORDS, LENGTHS)["net_input"]["src_tokens"]
TARGET = torch.randint(
    4, len(WORDS), (len(LENGTHS), 30), generator=torch.Generator().manual_seed(1)
)
INT8 = pytest.param("int8", marks=pytest.mark.int8)


@torch.no_grad()
def has_same_bits(model: Any, precision: Precision) -> bool:
    """Whether each row has, alone and in blocks of any width, the scores that it has in a batch and one block."""
    arithmetic = Arithmetic(precision, bit_exact=True)
    encoder = Encoder(model.encoder, arithmetic)
    decoder = Decoder(model.decoder, arithmetic)

    def scores(tokens: Tensor, target: Tensor, width: int) -> Tensor:
        decoder.start(encoder(tokens))
        starts = range(0, target.size(1), width)
        return torch.cat(
            [
                scored(
                    decoder, target[:, at : at + width], torch.full((len(target),), at)
                )
                for at in starts
            ],
            dim=1,
        )

    expected = scores(BATCH, TARGET, 30)
    same = []
    for width in (1, 2, 5, 11):
        same.append(torch.equal(scores(BATCH, TARGET, width), expected))
        for row in range(len(LENGTHS)):
            alone = BATCH[row : row + 1, BATCH[row] != PAD]
            same.append(
                torch.equal(
                    scores(alone, TARGET[row : row + 1], width), expected[row : row + 1]
                )
            )
    return all(same)


def sizes(head_dim: int) -> dict[str, int]:
    return {
        "encoder_embed_dim": 4 * head_dim,
        "decoder_embed_dim": 4 * head_dim,
    } | HEADS


HEADS = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
PROJECTED = {
    "decoder_input_dim": 20, "decoder_output_dim": 12, "encoder_ffn_embed_dim": 40, "decoder_ffn_embed_dim": 40,
}  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        *list(SHAPES.values())[:4],
        *map(sizes, (1, 5, 7, 11, 13)),
        {**PROJECTED, "activation_fn": "gelu"},
    ],
)
@pytest.mark.parametrize("precision", ["model", INT8])
def test_it_holds_for_every_model(
    options: dict[str, Any], precision: Precision
) -> None:
    """A processor with AVX-512 adds 5 to 11 numbers of a head in an order that depends on the number of queries."""
    assert has_same_bits(random_model(1, WORDS, **options), precision)


@pytest.mark.parametrize("arithmetic", [Arithmetic("int8"), Arithmetic(bit_exact=True)])
def test_without_the_kernels_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, arithmetic: Arithmetic
) -> None:
    def refusal(model: Any) -> str:
        with pytest.raises(AggdecError) as caught:
            Engines(arithmetic).encode(model, {"src_tokens": BATCH})
        return str(caught.value)

    name = f"{arithmetic.options()} needs this plugin's kernels, which "
    half = random_model(1, WORDS).half()
    tanh = random_model(1, WORDS, activation_fn="tanh")
    assert refusal(half).startswith(
        f"{name}do not compute in torch.float16: take a model in single precision"
    )
    assert refusal(tanh).startswith(f"{name}do not have the activation tanh")
    monkeypatch.setattr(library, "kernels", lambda: None)
    capability = torch.backends.cpu.get_cpu_capability()
    assert refusal(random_model(1, WORDS)).startswith(
        f"{name}are missing here (vector instructions: {capability}"
    )


@pytest.mark.parametrize(
    "arithmetic", [Arithmetic("int8"), Arithmetic("bf16"), Arithmetic(bit_exact=True)]
)
@pytest.mark.parametrize("shape", list(FALLBACK_SHAPES)[::2])
def test_models_without_an_engine_are_refused_by_name(
    shape: str, arithmetic: Arithmetic
) -> None:
    model = model_of_shape(shape, 1, WORDS)
    with pytest.raises(
        AggdecError, match=f"{arithmetic.options()} needs this plugin's engine"
    ):
        Engines(arithmetic).encode(model, random_batch(1, WORDS, [3])["net_input"])
