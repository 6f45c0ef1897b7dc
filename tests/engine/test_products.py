"""Fused and packed linear layers, in every precision, against plain ones."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.choose_backend import arithmetic_of_drafts
from fairseq_aggdec.engine.native import library
from fairseq_aggdec.engine.plain import products
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.engine.plain.products import Linear, PrepackedLinear, can_prepack


@pytest.mark.parametrize("rows", [1, 3, 200])
@pytest.mark.parametrize("activation", [None, F.relu, F.gelu])
@pytest.mark.parametrize("bias", [False, True])
@torch.no_grad()
def test_packed_or_not_the_result_is_the_same(
    rows: int, activation: products.Activation | None, bias: bool
) -> None:
    torch.manual_seed(rows)
    module = nn.Linear(96, 160, bias=bias)
    layer = PrepackedLinear(module.weight, module.bias, activation)
    x = torch.randn(2, rows, 96)
    expected = module(x) if activation is None else activation(module(x))
    for worth in (0, 10**12):  # always packed, never packed
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(products, "_MIN_MULTIPLICATIONS", worth)
            torch.testing.assert_close(layer(x), expected, atol=1e-5, rtol=1e-5)
            strided = x.transpose(0, 1)
            torch.testing.assert_close(
                layer(strided), expected.transpose(0, 1), atol=1e-5, rtol=1e-5
            )


@pytest.mark.parametrize("functions", ["missing", "other signature", "other result"])
@torch.no_grad()
def test_without_the_functions_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, functions: str
) -> None:
    def reorder(weight: torch.Tensor, *rest: object) -> torch.Tensor:
        return weight

    def product(x: torch.Tensor, *rest: object) -> torch.Tensor:
        if functions == "other signature":
            raise TypeError("too many arguments")
        return x.new_zeros(6, 12)

    module = nn.Linear(8, 8)
    replaced = SimpleNamespace(
        _reorder_linear_weight=reorder, _linear_pointwise=product
    )
    monkeypatch.setattr(
        torch.ops, "mkldnn", object() if functions == "missing" else replaced
    )
    can_prepack.cache_clear()
    layer = PlainBackend(Arithmetic(), module.weight).product(
        module.weight, module.bias
    )
    can_prepack.cache_clear()
    assert type(layer) is Linear


def test_this_pytorch_has_them() -> None:
    """A new version that drops the functions must not go unnoticed."""
    assert can_prepack()


@pytest.mark.parametrize(
    "found", [SimpleNamespace(quantises=True), SimpleNamespace(quantises=False), None]
)
def test_drafts_that_are_judged_take_int8_where_kernels_do(
    monkeypatch: pytest.MonkeyPatch, found: Any
) -> None:
    monkeypatch.setattr(library, "kernels", lambda: found)
    verifier = torch.zeros(1)
    narrow = "int8" if found and found.quantises else "model"
    asked = [
        (Arithmetic(), verifier),
        (Arithmetic(bit_exact=True), verifier),
        (Arithmetic(), verifier.half()),
    ]
    asked.append((Arithmetic("bf16"), verifier))
    given = [arithmetic_of_drafts(arithmetic, weight) for arithmetic, weight in asked]
    assert [arithmetic.precision for arithmetic in given] == [
        narrow,
        narrow,
        "model",
        "bf16",
    ]
