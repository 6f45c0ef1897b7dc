"""Which precision the options ask for, and which options exclude each other."""

from typing import Any

import pytest

from fairseq_aggdec.engine.arithmetic.precision import Arithmetic
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig
from fairseq_aggdec.tasks.arithmetic_options import arithmetic_of, check_arithmetic_options


def config(decoding: str = "iad", **options: Any) -> AggressiveTranslationConfig:
    return AggressiveTranslationConfig(decoding=decoding, **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"bf16": True}, Arithmetic("bf16")),
        ({"fp16": True}, Arithmetic()),  # fairseq halves the model, and the engine computes as the model is
        ({"int8": True, "bit_exact": True}, Arithmetic("int8", bit_exact=True)),
    ],
)
def test_taken(options: dict[str, Any], expected: Arithmetic) -> None:
    check_arithmetic_options(config(**options))
    assert arithmetic_of(config(**options)) == expected


@pytest.mark.parametrize(
    ("decoding", "options", "message"),
    [
        ("iad", {"int8": True, "bf16": True}, "--int8 and --bf16: one precision"),
        ("iad", {"bf16": True, "fp16": True}, "--bf16 and --fp16: one precision"),
        ("beam", {"int8": True}, "--int8 is for this plugin's own modes"),
        *[(mode, {"bit_exact": True}, f"--bit-exact is read by .*not by {mode}") for mode in ("beam", "nar")],
        ("gad++", {"bit_exact": True}, r"--bit-exact is read by .*not by gad\+\+"),
    ],
)
def test_refused(decoding: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AggdecError, match=message):
        check_arithmetic_options(config(decoding, **options))


@pytest.mark.parametrize("mode", ["greedy", "iad", "gad", "blockwise", "hybrid", "aggressive"])
def test_every_lossless_mode_can_be_bit_exact(mode: str) -> None:
    check_arithmetic_options(config(mode, bit_exact=True))
