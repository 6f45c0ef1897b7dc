"""Products in every precision against plain ones."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import Arithmetic, Precision
from fairseq_aggdec.engine.choose_backend import arithmetic_of_drafts
from fairseq_aggdec.engine.native import modules
from fairseq_aggdec.engine.plain import linear
from fairseq_aggdec.engine.plain.linear import can_prepack, product_with


def layer(inputs: int, outputs: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(outputs, inputs, generator=draw) / inputs**0.5, torch.randn(outputs, generator=draw)


@pytest.mark.parametrize("name", ["own", "bf16"])
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
    assert [can_prepack(kind) for kind in (torch.float32, torch.bfloat16)] == [
        True,
        torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    ]


@pytest.mark.parametrize("found", [SimpleNamespace(quantises=True), SimpleNamespace(quantises=False), None])
def test_drafts_that_are_judged_take_int8_where_kernels_do(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    """And no fixed shapes: what they round shows in no output."""
    monkeypatch.setattr(modules, "kernels", lambda: found)
    verifier, narrow = torch.zeros(1), "int8" if found and found.quantises else "own"
    asked = [(Arithmetic(), verifier), (Arithmetic(bit_exact=True), verifier), (Arithmetic(), verifier.half())]
    asked.append((Arithmetic("bf16"), verifier))
    given = [arithmetic_of_drafts(arithmetic, weight) for arithmetic, weight in asked]
    assert [arithmetic.precision for arithmetic in given] == [narrow, narrow, "own", "bf16"]
    assert not any(arithmetic.fixed_shapes for arithmetic in given)


@pytest.mark.parametrize("relu", [False, True])
def test_bf16_without_onednn(monkeypatch: pytest.MonkeyPatch, relu: bool) -> None:
    weight, bias = layer(64, 48)
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
    expected = F.linear(x, weight, bias)
    monkeypatch.setattr(linear, "can_prepack", lambda kind: False)
    plain = product_with(weight, bias, relu, "bf16")
    assert isinstance(plain, linear.Plain)
    torch.testing.assert_close(plain(x), expected.relu() if relu else expected, atol=0.03, rtol=0.02)
