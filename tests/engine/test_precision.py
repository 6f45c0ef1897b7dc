"""Products in every precision against plain ones, and how they are refused."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import precision
from fairseq_aggdec.engine.arithmetic.bit_exact import exact_rows
from fairseq_aggdec.engine.arithmetic.linear import Linear
from fairseq_aggdec.engine.arithmetic.precision import Arithmetic, Precision, can_prepack, can_quantise, product_with
from fairseq_aggdec.errors import AggdecError

INT8 = pytest.param("int8", marks=pytest.mark.int8)
TOLERANCE: dict[Precision, float] = {"own": 1e-5, "bf16": 0.03, "int8": 0.05}


def layer(inputs: int, outputs: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(outputs, inputs, generator=draw) / inputs**0.5, torch.randn(outputs, generator=draw)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 200])
@pytest.mark.parametrize("name", ["own", "bf16", INT8])
def test_products_are_close_to_plain_ones(name: Precision, rows: int, relu: bool) -> None:
    weight, bias = layer(96, 160)
    x = torch.randn(2, rows, 96, generator=torch.Generator().manual_seed(rows))
    for b in (bias, None):
        product = product_with(weight, b, relu, name)
        assert product is not None
        expected = F.linear(x, weight, b)
        actual = product(x)
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual, expected.relu() if relu else expected, atol=TOLERANCE[name], rtol=0.02)


@pytest.mark.parametrize("name", ["own", "bf16", INT8])
@pytest.mark.parametrize("size", [(100, 36), (2048, 512)])
def test_a_row_does_not_depend_on_the_others(name: Precision, size: tuple[int, int]) -> None:
    """What `bit_exact` is built on, at every number of rows that it computes."""
    product = Linear(*layer(*size), arithmetic=Arithmetic(name, bit_exact=True))
    x = torch.randn(160, size[0], generator=torch.Generator().manual_seed(1))
    expected = product(x)
    for rows in (4, 8, 12, 20, 36, 64, 112):
        assert rows == exact_rows(rows)
        assert torch.equal(product(x[:rows]), expected[:rows])
        assert torch.equal(product(x[rows - 3 : 2 * rows - 3]), expected[rows - 3 : 2 * rows - 3])


@pytest.mark.int8
def test_int8_rows_have_scales_of_their_own() -> None:
    """A token beside one of a thousand times its size: with one scale for both, nothing of it would be left."""
    weight, bias = layer(64, 48)
    product = product_with(weight, bias, False, "int8")
    assert product is not None
    x = torch.randn(2, 64, generator=torch.Generator().manual_seed(1))
    beside_large = torch.stack([x[0], 1000 * x[1]])
    assert torch.equal(product(beside_large)[0], product(x)[0])
    torch.testing.assert_close(product(1e-6 * x) - bias, 1e-6 * (product(x) - bias), atol=1e-6, rtol=1e-3)


@pytest.mark.int8
def test_int8_at_the_ends_of_its_range() -> None:
    """Largest inputs times largest weights: processors that add up in 16 bits cut this off."""
    inputs = 512
    product = product_with(torch.ones(16, inputs), None, False, "int8")
    assert product is not None
    torch.testing.assert_close(product(torch.full((4, inputs), 3.0)), torch.full((4, 16), 3.0 * inputs))
    torch.testing.assert_close(product(torch.full((4, inputs), -3.0)), torch.full((4, 16), -3.0 * inputs))


@pytest.mark.parametrize("name", ["bf16", INT8])
def test_models_in_half_precision_keep_it_between_products(name: Precision) -> None:
    weight, bias = layer(64, 48)
    product = product_with(weight.bfloat16(), bias.bfloat16(), False, name)
    assert product is not None
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(1)).bfloat16()
    y = product(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), F.linear(x.float(), weight, bias), atol=0.06, rtol=0.03)


def test_this_pytorch_has_them() -> None:
    """Where the processor has the instructions: a new version that drops the functions must not go unnoticed."""
    computes_bf16, has_vnni = torch.ops.mkldnn._is_mkldnn_bf16_supported(), torch.cpu._is_vnni_supported()
    assert [can_prepack(torch.float32), can_prepack(torch.bfloat16), can_quantise()] == [True, computes_bf16, has_vnni]


@pytest.mark.int8
@pytest.mark.parametrize("with_kernels", [True, False])
def test_drafts_that_are_judged_take_int8_where_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, with_kernels: bool
) -> None:
    """And no fixed shapes: what they round shows in no output."""
    monkeypatch.setattr(precision, "kernels", lambda: SimpleNamespace(quantises=True) if with_kernels else None)
    verifier = torch.zeros(1)
    found = [
        asked.for_drafts(dim, weight)
        for asked, dim, weight in (
            (Arithmetic(), 512, verifier),
            (Arithmetic(bit_exact=True), 1024, verifier),
            (Arithmetic(), 256, verifier),
            (Arithmetic(), 512, verifier.half()),
            (Arithmetic("bf16"), 512, verifier),
        )
    ]
    narrow = "int8" if with_kernels else "own"
    assert [arithmetic.precision for arithmetic in found] == ["int8", "int8", narrow, "own", "bf16"]
    assert not any(arithmetic.fixed_shapes for arithmetic in found)


def test_int8_is_refused_by_name_without_its_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.ops, "onednn", object())
    can_quantise.cache_clear()
    try:
        with pytest.raises(AggdecError, match=r"--int8: PyTorch .* has no int8 products"):
            product_with(*layer(8, 8), False, "int8")
    finally:
        can_quantise.cache_clear()


def test_int8_is_refused_where_sums_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    real = torch.ops.onednn

    def cut_off(x: Tensor, *rest: object) -> Tensor:
        return real.qlinear_pointwise(x, *rest).clamp(max=12.0)

    replaced = SimpleNamespace(qlinear_prepack=real.qlinear_prepack, qlinear_pointwise=cut_off)
    monkeypatch.setattr(torch.ops, "onednn", replaced)
    assert not can_quantise.__wrapped__()


@pytest.mark.parametrize("relu", [False, True])
def test_bf16_without_onednn(monkeypatch: pytest.MonkeyPatch, relu: bool) -> None:
    weight, bias = layer(64, 48)
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
    expected = F.linear(x, weight, bias)
    monkeypatch.setattr(precision, "can_prepack", lambda kind: False)
    plain = product_with(weight, bias, relu, "bf16")
    assert isinstance(plain, precision.Plain)
    torch.testing.assert_close(plain(x), expected.relu() if relu else expected, atol=0.03, rtol=0.02)
