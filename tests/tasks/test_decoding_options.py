"""Options of how drafts are made, accepted and computed: what becomes of them, and which go together."""

import math
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_aggdec.decoding.verification import EXACT, Acceptance, TopBeta, WithinDistance
from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.modes import MODES
from fairseq_aggdec.tasks.acceptance_options import acceptance_of, values_of
from fairseq_aggdec.tasks.aggressive import DecodingOptions, options_of
from fairseq_aggdec.tasks.decoding_options import arithmetic_of, check_decoding_options, heads_to_use, resolved_mode
from tests.support.random_models import dictionary, random_blockwise
from tests.support.small_generators import FEW_WORDS, cached_model

WORDS = dictionary(96)  # 100 symbols
PLAIN = cached_model("post-norm sinusoidal", 0)
WITH_HEADS = random_blockwise("post-norm sinusoidal", "learned", 0, FEW_WORDS, FEW_WORDS, heads=6)


def config(decoding: str, **options: Any) -> DecodingOptions:
    return options_of(DecodingOptions(decoding=decoding, **options))


@pytest.mark.parametrize(
    ("decoding", "options", "message"),
    [
        ("iad", {"drafter_path": "d.pt"}, "--drafter-path"),
        ("gad", {}, "--drafter-path"),
        ("gad", {"drafter_path": "d.pt", "min_block": 2}, r"--min-block is read by"),
        ("iad", {"drafts": "some"}, "--drafts some: choose auto or whole"),
        ("iad", {"block_size": 4}, "--block-size"),
        ("blockwise", {"tolerance": math.nan}, "--tolerance nan"),
        ("blockwise", {"accept_distance": 1.0, "top_beta": 2}, "--accept-distance does not go with --top-beta"),
        ("iad", {"top_beta": 3}, r"--top-beta is read by --decoding iad\+\+, gad\+\+, blockwise only"),
        ("iad", {"int8": True, "bf16": True}, "--int8 and --bf16: one precision"),
        ("iad", {"bit_exact": True, "bf16": True}, "--bit-exact --bf16: same bits need this plugin's kernels"),
        ("beam", {"bit_exact": True}, "--bit-exact is read by .*not by beam"),
        ("gad++", {"bit_exact": True, "drafter_path": "d.pt"}, r"--bit-exact is read by .*not by gad\+\+"),
    ],
)
def test_refused(decoding: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AggdecError, match=message):
        check_decoding_options(config(decoding, **options))


def test_half_precision_has_the_same_bits_on_a_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    both: dict[str, Any] = {"bit_exact": True, "fp16": True}
    for has_gpu, options in ((False, {}), (True, {"cpu": True})):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=has_gpu: there)
        with pytest.raises(AggdecError, match=r"--bit-exact --fp16: .* in --int8 on a CPU, and in --fp16 on a GPU"):
            check_decoding_options(config("iad", **both, **options))
    check_decoding_options(config("iad", **both, cpu=False))


def test_every_mode_takes_the_options_of_its_row() -> None:
    values: dict[str, Any] = {"drafts": "whole", "drafter_path": "d.pt", "block_size": 4, "top_beta": 2}
    values |= {"tolerance": 3.0, "min_block": 2, "bit_exact": True, "int8": True, "max_draft_len": 3}
    for name, mode in MODES.items():
        check_decoding_options(config(name, **{option: values[option] for option in mode.options if option in values}))


def test_precisions_arrive() -> None:
    assert arithmetic_of(config("iad", bf16=True)) == Arithmetic("bf16")
    assert arithmetic_of(config("iad", fp16=True)) == Arithmetic(), "the engine computes as the model is"
    assert arithmetic_of(config("iad", int8=True, bit_exact=True)) == Arithmetic("int8", bit_exact=True)


def test_aggressive_is_what_is_lossless_with_what_is_given() -> None:
    assert resolved_mode(config("aggressive"), [PLAIN]) == "iad"
    assert resolved_mode(config("aggressive"), [PLAIN, WITH_HEADS]) == "blockwise"
    assert resolved_mode(config("aggressive", draft_file="drafts"), [WITH_HEADS]) == "iad"
    assert resolved_mode(config("aggressive", drafter_path="d.pt"), [WITH_HEADS]) == "gad"
    with pytest.raises(AggdecError, match="--block-size 3 needs a drafter"):
        resolved_mode(config("aggressive", block_size=3), [PLAIN])


def test_how_many_heads_are_used() -> None:
    assert heads_to_use(config("blockwise"), [PLAIN, WITH_HEADS]) == 6
    assert heads_to_use(config("aggressive", block_size=3), [PLAIN, WITH_HEADS]) == 3
    with pytest.raises(AggdecError, match="--block-size 7: the model has 6 heads"):
        heads_to_use(config("aggressive", block_size=7), [WITH_HEADS])


def accepts(mode: str, symbols: Dictionary = WORDS, **options: Any) -> Any:
    return acceptance_of(mode, config(mode, **options), symbols, 8)


def test_criteria_of_gad_and_blockwise() -> None:
    assert accepts("gad") is EXACT
    assert accepts("gad++") == Acceptance(TopBeta(3, 1.0)), "the papers' high-quality setting"
    assert accepts("gad++", top_beta=5, tolerance=3.0) == Acceptance(TopBeta(5, 3.0))
    assert accepts("gad++", top_beta=1).is_exact
    assert accepts("gad++", tolerance=0.0).is_exact
    assert accepts("gad++", min_block=4) == Acceptance(TopBeta(3, 1.0), minimum=4)
    assert accepts("blockwise", min_block=1).is_exact
    assert accepts("blockwise", top_beta=2) == Acceptance(TopBeta(2, math.inf)), "papers/004 §5.1"
    assert accepts("blockwise", tolerance=0.5) == Acceptance(TopBeta(None, 0.5))
    assert accepts("blockwise", top_beta=100, tolerance=0.5) == Acceptance(TopBeta(None, 0.5)), "of 100 symbols"
    assert accepts("blockwise", min_block=8) == Acceptance(minimum=8)


def test_distances_are_between_numbers() -> None:
    symbols = Dictionary()
    for value in ("0", "17", "255", "x7", "²"):
        symbols.add_symbol(value)
    found = accepts("blockwise", symbols, accept_distance=2.0).criterion
    assert isinstance(found, WithinDistance)
    assert found.distance == 2.0
    assert found.values[4:7].tolist() == [0, 17, 255]
    assert bool(found.values[[0, 1, 2, 3, 7, 8]].isnan().all())
    assert torch.equal(values_of(["5", "-1"]).isnan(), torch.tensor([False, True]))


def test_refused_once_the_model_is_known() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"top_beta": 101}, "--top-beta 101: the target dictionary has only 100 symbols"),
        ({"min_block": 9}, "--min-block 9: an iteration commits at most 8 tokens here"),
        ({"accept_distance": 1.0}, "--accept-distance: the target dictionary has no numbers"),
    ]
    for options, message in cases:
        with pytest.raises(AggdecError, match=message):
            accepts("blockwise", **options)
