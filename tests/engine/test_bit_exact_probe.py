"""Tests of `fairseq_aggdec.engine.arithmetic.bit_exact_probe`, with engines that break one promise each.

`test_bit_exact.py` has the real engines under the probe.
"""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.decoding.roles import Block
from fairseq_aggdec.engine.arithmetic.bit_exact_probe import BitExactProbe
from fairseq_aggdec.engine.arithmetic.precision import Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.block_encoder import BlockEncoder
from tests.random_models import ENGINE_SHAPES, dictionary, model_of_shape

WORDS = dictionary(40)
ULP = 1 + 2**-20

Engines = tuple[BlockEncoder, BlockDecoder]


@pytest.fixture
def engines() -> Engines:
    model = model_of_shape(ENGINE_SHAPES[0], 3, WORDS, WORDS)
    exact = Arithmetic(bit_exact=True)
    return BlockEncoder(model.encoder, exact), BlockDecoder(model.decoder, arithmetic=exact)


def changed_by(wrong: Callable[[Tensor, Tensor], bool]) -> Callable[[BlockDecoder], None]:
    """A decoder whose scores move by one part in a million for some blocks (tokens B x W, starts B)."""

    def change(decoder: BlockDecoder) -> None:
        score = decoder.score

        def uneven(block: Block) -> Iterator[Tensor]:
            for scores in score(block):
                yield scores * ULP if wrong(block.tokens, block.starts) else scores

        decoder.score = uneven  # type: ignore[method-assign]

    return change


@pytest.mark.parametrize(
    ("change", "objection"),
    [
        (changed_by(lambda block, starts: block.size(0) == 1), "is scored otherwise in a batch than alone"),
        (changed_by(lambda block, starts: block.size() == (1, 5)), "tokens in 1 blocks of 5 are scored otherwise"),
        (changed_by(lambda block, starts: block.size() == (5, 26)), "tokens in 5 blocks of 26 are scored otherwise"),
        (changed_by(lambda block, starts: len(starts.unique()) > 1), "rows at different positions disturb each other"),
    ],
)
@torch.no_grad()
def test_each_breach_is_named(engines: Engines, change: Callable[[BlockDecoder], None], objection: str) -> None:
    change(engines[1])
    assert objection in (BitExactProbe(*engines).objection() or "")


def test_a_source_that_is_read_otherwise_in_company_is_named(engines: Engines) -> None:
    encoder, decoder = engines
    encode = type(encoder).__call__

    class Uneven(BlockEncoder):
        def __call__(self, tokens: Tensor) -> dict[str, list[Tensor]]:
            encoded = encode(self, tokens)
            if tokens.size(0) > 1:
                encoded["encoder_out"][0] = encoded["encoder_out"][0] * ULP
            return encoded

    encoder.__class__ = Uneven
    assert "is encoded otherwise in a batch than alone" in (BitExactProbe(encoder, decoder).objection() or "")
