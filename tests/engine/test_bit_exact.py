"""Shapes of bit-exact decoding, and whether a breach of it is noticed."""

import re
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.decoding.roles import Block
from fairseq_aggdec.engine import block_decoder, block_encoder, engines, layers
from fairseq_aggdec.engine.arithmetic.bit_exact import aligned, exact_keys, exact_rows
from fairseq_aggdec.engine.arithmetic.bit_exact_probe import BitExactProbe
from fairseq_aggdec.engine.arithmetic.precision import Arithmetic, Precision, can_prepack
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.block_encoder import BlockEncoder
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.native import modules
from fairseq_aggdec.errors import AggdecError
from tests.random_models import ENGINE_SHAPES, FALLBACK_SHAPES, dictionary, model_of_shape, random_batch, random_model

pytestmark = pytest.mark.usefixtures("either_engine")

WORDS = dictionary(40)
PAD = WORDS.pad()
ULP = 1 + 2**-20


def test_shapes() -> None:
    assert [exact_rows(rows) for rows in (1, 4, 5, 26)] == [4, 4, 8, 28]
    assert [exact_keys(keys) for keys in (1, 16, 17, 100)] == [16, 16, 32, 112]


@pytest.mark.parametrize("left_pad", [False, True])
def test_sentences_begin_at_position_0(left_pad: bool) -> None:
    lengths = [3, 20, 1, 9]
    tokens = random_batch(1, WORDS, lengths, left_pad)["net_input"]["src_tokens"]
    moved = aligned(tokens, PAD)
    assert moved.shape == (4, 32)
    for row, length in enumerate(lengths):
        assert moved[row, : length + 1].tolist() == tokens[row][tokens[row] != PAD].tolist()
        assert (moved[row, length + 1 :] == PAD).all()


def engines_of(shape: str, precision: Precision = "own") -> tuple[BlockEncoder, BlockDecoder]:
    model = model_of_shape(shape, 1, WORDS, WORDS)
    arithmetic = Arithmetic(precision, bit_exact=True)
    return BlockEncoder(model.encoder, arithmetic), BlockDecoder(model.decoder, arithmetic=arithmetic)


@pytest.mark.parametrize(
    ("shape", "precision"),
    [
        *((shape, "own") for shape in ENGINE_SHAPES),
        *((shape, "bf16") for shape in ENGINE_SHAPES[1::3]),
        *(pytest.param(shape, "int8", marks=pytest.mark.int8) for shape in ENGINE_SHAPES[1::3]),
    ],
)
def test_it_holds_here(shape: str, precision: Precision) -> None:
    assert BitExactProbe(*engines_of(shape, precision)).objection() is None


@pytest.mark.parametrize("head_dim", [1, 5, 6, 7, 10, 11, 13])
@pytest.mark.parametrize("precision", ["own", "bf16", pytest.param("int8", marks=pytest.mark.int8)])
def test_it_holds_for_heads_of_few_numbers(head_dim: int, precision: Precision) -> None:
    """A processor with AVX-512 adds 5 to 11 numbers of a head in an order that depends on the number of queries."""
    if (precision, head_dim) == ("bf16", 1) and not can_prepack(torch.bfloat16):
        head_dim = 2  # emulated bfloat16 rounds heads of one number otherwise in a batch, and --bit-exact is refused
    dims = {"encoder_embed_dim": 4 * head_dim, "decoder_embed_dim": 4 * head_dim}
    model = random_model(1, WORDS, WORDS, encoder_attention_heads=4, decoder_attention_heads=4, **dims)
    arithmetic = Arithmetic(precision, bit_exact=True)
    encoder, decoder = BlockEncoder(model.encoder, arithmetic), BlockDecoder(model.decoder, arithmetic=arithmetic)
    assert BitExactProbe(encoder, decoder).objection() is None


@pytest.mark.parametrize("precision", ["own", "bf16", pytest.param("int8", marks=pytest.mark.int8)])
@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
def test_it_holds_for_all_products_and_activations(activation: str, precision: Precision) -> None:
    """With projections before and behind the layers, and where a row of activations does not fill whole vectors."""
    dims = {"decoder_input_dim": 20, "decoder_output_dim": 12, "encoder_ffn_embed_dim": 40, "decoder_ffn_embed_dim": 40}
    model = random_model(1, WORDS, WORDS, activation_fn=activation, **dims)
    arithmetic = Arithmetic(precision, bit_exact=True)
    encoder, decoder = BlockEncoder(model.encoder, arithmetic), BlockDecoder(model.decoder, arithmetic=arithmetic)
    assert BitExactProbe(encoder, decoder).objection() is None


def unchanged(number: int) -> int:
    return number


@pytest.mark.parametrize(
    ("places", "name", "replacement", "objection"),
    [
        ([block_encoder], "aligned", lambda tokens, pad: tokens, "a sentence of .* tokens is encoded otherwise"),
        ([block_decoder, layers], "exact_rows", unchanged, "are scored otherwise"),
        ([layers], "exact_keys", unchanged, "otherwise"),
    ],
)
def test_other_shapes_are_noticed(
    monkeypatch: pytest.MonkeyPatch, places: list[object], name: str, replacement: object, objection: str
) -> None:
    """What the probe says where a device needs more than is done for it."""
    monkeypatch.setattr(modules, "kernels", lambda: None)  # they have the same bits in any shape
    for place in places:
        monkeypatch.setattr(place, name, replacement)
    found = BitExactProbe(*engines_of(ENGINE_SHAPES[0])).objection()
    assert re.search(objection, found or "")


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
def test_each_breach_is_named(change: Callable[[BlockDecoder], None], objection: str) -> None:
    encoder, decoder = engines_of(ENGINE_SHAPES[0])
    change(decoder)
    assert objection in (BitExactProbe(encoder, decoder).objection() or "")


def test_a_source_that_is_read_otherwise_in_company_is_named() -> None:
    encoder, decoder = engines_of(ENGINE_SHAPES[0])
    encode = type(encoder).__call__

    class Uneven(BlockEncoder):
        def __call__(self, tokens: Tensor) -> dict[str, list[Tensor]]:
            encoded = encode(self, tokens)
            if tokens.size(0) > 1:
                encoded["encoder_out"][0] = encoded["encoder_out"][0] * ULP
            return encoded

    encoder.__class__ = Uneven
    assert "is encoded otherwise in a batch than alone" in (BitExactProbe(encoder, decoder).objection() or "")


def test_scores_that_are_no_numbers_are_named() -> None:
    model = model_of_shape(ENGINE_SHAPES[0], 1, WORDS, WORDS)
    with torch.no_grad():
        model.decoder.output_projection.weight[3] = 1e38
    with pytest.raises(AggdecError, match=r"--bit-exact cannot be kept here.*not all finite"):
        Engines(Arithmetic(bit_exact=True)).encode(model, random_batch(1, WORDS, [3])["net_input"])


def test_the_objection_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines.BitExactProbe, "objection", lambda self: "something differs")
    model = model_of_shape(ENGINE_SHAPES[0], 1, WORDS, WORDS)
    with pytest.raises(AggdecError, match=r"--bit-exact cannot be kept here, on cpu with torch.float32 .*: something"):
        Engines(Arithmetic(bit_exact=True)).encode(model, random_batch(1, WORDS, [3])["net_input"])
    Engines(Arithmetic("bf16")).encode(model, random_batch(1, WORDS, [3])["net_input"])  # promises less


@pytest.mark.parametrize("arithmetic", [Arithmetic("int8"), Arithmetic("bf16"), Arithmetic(bit_exact=True)])
@pytest.mark.parametrize("shape", list(FALLBACK_SHAPES)[::2])
def test_models_without_an_engine_are_refused_by_name(shape: str, arithmetic: Arithmetic) -> None:
    model = model_of_shape(shape, 1, WORDS, WORDS)
    with pytest.raises(AggdecError, match=f"{arithmetic.options()} needs this plugin's engine"):
        Engines(arithmetic).encode(model, random_batch(1, WORDS, [3])["net_input"])
