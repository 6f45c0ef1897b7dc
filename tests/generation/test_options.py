"""The table of modes, and the options of how drafts are made, accepted and computed: which go together."""

import math
from argparse import Namespace
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_aggdec.decoding.verification import (
    EXACT,
    Acceptance,
    TopBeta,
    WithinDistance,
)
from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.generation.acceptance import acceptance_of, values_of
from fairseq_aggdec.generation.drafting import DRAFTERS
from fairseq_aggdec.generation.modes import BLOCK_MODEL, MODES, SMALL_MODEL, modes_help
from fairseq_aggdec.generation.options import Decoding
from tests.support.helpers import refused_with
from tests.support.random_models import dictionary

WORDS = dictionary(96)  # 100 symbols


def test_every_row_names_drafters_options_and_modes_that_there_are() -> None:
    options = {option.name for option in fields(Decoding)}
    for name, mode in MODES.items():
        assert name == mode.name
        assert mode.drafter is None or mode.drafter in DRAFTERS
        assert set(mode.alternatives) <= MODES.keys()
        assert set(mode.options) <= options
        assert f"{name}: {mode.help}" in modes_help()


@pytest.mark.parametrize(
    "mode, options, message",
    [
        ("iad", {"drafter": "d.pt"}, "--drafter-path"),
        ("gad", {}, "--drafter-path"),
        ("gad", {"drafter": "d.pt", "min_block": 2}, r"--min-block is read by"),
        ("iad", {"drafts": "some"}, "--drafts some: choose auto or whole"),
        ("iad", {"copies": "some"}, "--copies some: choose resync or paper"),
        (
            "iad++",
            {"copies": "paper"},
            r"--copies is read by --decoding iad, aggressive only",
        ),
        ("blockwise", {"top_beta": 0}, "--top-beta 0: must be at least 1"),
        ("iad", {"block_size": 4}, "--block-size"),
        ("blockwise", {"tolerance": math.nan}, "--tolerance nan"),
        (
            "blockwise",
            {"accept_distance": 1.0, "top_beta": 2},
            "--accept-distance does not go with --top-beta",
        ),
        (
            "iad",
            {"top_beta": 3},
            r"--top-beta is read by --decoding .*, and not by iad: leave it out",
        ),
        (
            "iad",
            {"bit_exact": True, "bf16": True},
            "--bit-exact --bf16: same bits need this plugin's kernels",
        ),
        (
            "iad",
            {"bit_exact": True, "fp16": True},
            r"--bit-exact --fp16: .* on a CPU, and in --fp16 on a GPU",
        ),
        ("beam", {"bit_exact": True}, "--bit-exact is read by .*not by beam"),
        (
            "gad++",
            {"bit_exact": True, "drafter": "d.pt"},
            r"--bit-exact is read by .*not by gad\+\+",
        ),
    ],
)
def test_refused(mode: str, options: dict[str, Any], message: str) -> None:
    with refused_with(message):
        Decoding(mode, **options).check()


def test_every_mode_takes_the_options_of_its_row() -> None:
    values: Any = {
        "drafts": "whole", "drafter": "d.pt", "block_size": 4, "top_beta": 2, "tolerance": 3.0, "min_block": 2,
        "bit_exact": True, "int8": True, "max_draft_len": 3, "copies": "paper",
    }  # fmt: skip
    for name, mode in MODES.items():
        Decoding(
            name,
            **{option: values[option] for option in mode.options if option in values},
        ).check()
    Decoding("iad", bit_exact=True, fp16=True, on_gpu=True).check()


def test_options_of_a_command_line_and_back() -> None:
    given = {
        "decoding": "gad",
        "drafter_path": "d.pt",
        "decoding_stats": "stats.jsonl",
        "int8": True,
    }
    decoding = Decoding.from_args(Namespace(**given, top_beta=None, beam=5))
    assert decoding == Decoding("gad", drafter="d.pt", stats="stats.jsonl", int8=True)
    assert decoding.options() == given


def test_in_another_mode_a_drafter_waits_that_is_not_read() -> None:
    decoding = Decoding("aggressive", drafter="d.pt", block_size=4, int8=True)
    assert decoding.with_mode("iad++", top_beta=5) == Decoding(
        "iad++", top_beta=5, int8=True
    )
    assert decoding.with_mode("gad", block_size=3) == Decoding(
        "gad", drafter="d.pt", block_size=3, int8=True
    )


def test_precisions_arrive() -> None:
    assert Decoding("iad", bf16=True).arithmetic == Arithmetic("bf16")
    assert Decoding("iad", fp16=True).arithmetic == Arithmetic(), (
        "the engine computes as the model is"
    )
    assert Decoding("iad", int8=True, bit_exact=True).arithmetic == Arithmetic(
        "int8", bit_exact=True
    )


def test_aggressive_is_what_is_lossless_with_what_is_given() -> None:
    aggressive = Decoding("aggressive")
    by_drafter = replace(aggressive, drafter="d.pt")
    for decoding, heads, kind, expected in (
        (aggressive, 0, BLOCK_MODEL, "iad"),
        (aggressive, 6, BLOCK_MODEL, "blockwise"),
        (replace(aggressive, draft_file="drafts"), 6, BLOCK_MODEL, "iad"),
        (by_drafter, 6, BLOCK_MODEL, "gad"),
        (by_drafter, 0, SMALL_MODEL, "speculative"),
        (replace(by_drafter, mode="gad++"), 0, SMALL_MODEL, "gad++"),
    ):
        assert decoding.resolved(heads, kind).name == expected


def test_lossless_is_what_accepts_the_verifiers_own_choices_alone() -> None:
    for exact in (
        Decoding("iad"),
        Decoding("blockwise"),
        Decoding("gad++", tolerance=0.0),
    ):
        assert exact.is_lossless, exact
    for other in (
        Decoding("nar"),
        Decoding("iad++"),
        Decoding("blockwise", top_beta=2),
    ):
        assert not other.is_lossless, other


def test_refused_once_the_models_are_loaded() -> None:
    cases: list[tuple[Decoding, int, str | None, str]] = [
        (
            Decoding("aggressive", block_size=3),
            0,
            None,
            "--block-size 3 needs a drafter",
        ),
        (
            Decoding("aggressive", block_size=7),
            6,
            None,
            "--block-size 7: the model has 6 heads",
        ),
        (
            Decoding("blockwise"),
            0,
            None,
            "--decoding blockwise needs a model with proposal heads",
        ),
        (
            Decoding("gad", drafter="d.pt"),
            0,
            SMALL_MODEL,
            "an ordinary model, not a block drafter, .* Are --path and",
        ),
        (
            Decoding("speculative", drafter="d.pt"),
            0,
            BLOCK_MODEL,
            "by this drafter decode with --decoding gad$",
        ),
    ]
    for decoding, heads, drafter, message in cases:
        decoding.check()
        with refused_with(message):
            decoding.check(heads, drafter)
    Decoding("aggressive", block_size=3).check(heads=6)


def accepts(mode: str, symbols: Dictionary = WORDS, **options: Any) -> Any:
    return acceptance_of(Decoding(mode, **options), symbols, 8)


def test_criteria_of_gad_and_blockwise() -> None:
    assert accepts("gad") is EXACT
    assert accepts("gad++", top_beta=5, tolerance=3.0) == Acceptance(TopBeta(5, 3.0))
    assert accepts("gad++", min_block=4) == Acceptance(TopBeta(3, 1.0), minimum=4), (
        "papers' high-quality setting"
    )
    for mode, exact in (
        ("gad++", {"top_beta": 1}),
        ("gad++", {"tolerance": 0.0}),
        ("blockwise", {"min_block": 1}),
    ):
        assert accepts(mode, **exact).is_exact
    assert accepts("blockwise", top_beta=2) == Acceptance(TopBeta(2, math.inf)), (
        "papers/004 §5.1"
    )
    assert accepts("blockwise", tolerance=0.5) == Acceptance(TopBeta(None, 0.5))
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


def test_refused_by_the_vocabulary_and_the_drafts() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"top_beta": 101},
            "--top-beta 101: the target dictionary has only 100 symbols",
        ),
        ({"min_block": 9}, "--min-block 9: an iteration commits at most 8 tokens here"),
        (
            {"accept_distance": 1.0},
            "--accept-distance: the target dictionary has no numbers",
        ),
    ]
    for options, message in cases:
        with refused_with(message):
            accepts("blockwise", **options)
