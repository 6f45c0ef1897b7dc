"""Which options go with which mode."""

from typing import Any

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig
from fairseq_aggdec.tasks.drafting_options import check_drafting_options, heads_to_use, resolved_mode
from tests.test_generator import cached_model
from tests.test_generator_blockwise import cached_blockwise


def config(decoding: str, **options: Any) -> AggressiveTranslationConfig:
    return AggressiveTranslationConfig(decoding=decoding, **options)


PLAIN, WITH_HEADS = cached_model("post-norm sinusoidal", 0), cached_blockwise("post-norm sinusoidal", "learned", 0)


def test_aggressive_is_what_is_lossless_with_what_is_given() -> None:
    assert resolved_mode(config("aggressive"), [PLAIN]) == "iad"
    assert resolved_mode(config("aggressive"), [PLAIN, WITH_HEADS]) == "blockwise"
    assert resolved_mode(config("aggressive", drafter_path="d.pt"), [WITH_HEADS]) == "gad"
    with pytest.raises(AggdecError, match="--block-size 3 needs a drafter"):
        resolved_mode(config("aggressive", block_size=3), [PLAIN])


def test_how_many_heads_are_used() -> None:
    assert heads_to_use(config("aggressive", block_size=3), [PLAIN, WITH_HEADS]) == 3
    with pytest.raises(AggdecError, match="--block-size 7: the model has 6 heads"):
        heads_to_use(config("aggressive", block_size=7), [WITH_HEADS])


@pytest.mark.parametrize(
    ("decoding", "options", "name"),
    [
        *[(mode, {"drafter_path": "d.pt"}, "--drafter-path") for mode in ("beam", "greedy", "iad", "blockwise")],
        *[(mode, {}, "--drafter-path") for mode in ("gad", "gad++")],
        *[(mode, {"adaptive_draft": True}, "--adaptive-draft is read by") for mode in ("beam", "greedy", "nar")],
        ("iad", {"block_size": 4}, "--block-size"),
        ("iad", {"adaptive_draft": True, "full_drafts": True}, "--adaptive-draft and --full-drafts"),
        ("blockwise", {"adaptive_draft": True, "min_block": 2}, "--adaptive-draft .* than --min-block commits"),
        ("hybrid", {"top_beta": 3}, "--top-beta is read by --decoding gad\\+\\+, blockwise only"),
        ("gad++", {"drafter_path": "d.pt", "top_beta": 0}, "--top-beta 0"),
    ],
)
def test_refused(decoding: str, options: dict[str, Any], name: str) -> None:
    with pytest.raises(AggdecError, match=name):
        check_drafting_options(config(decoding, **options))


LOSSY = {"top_beta": 3, "tolerance": 0.0, "eos_argmax": True, "accept_distance": 1.0, "min_block": 2}


@pytest.mark.parametrize("option", LOSSY)
@pytest.mark.parametrize("mode", ["gad", "nar", "aggressive"])
def test_a_mode_without_losses_takes_no_option_that_costs_some(mode: str, option: str) -> None:
    with pytest.raises(AggdecError, match=rf"--{option.replace('_', '-')} is read by --decoding gad\+\+"):
        check_drafting_options(config(mode, drafter_path="d.pt", **{option: LOSSY[option]}))


@pytest.mark.parametrize(
    ("decoding", "options"),
    [
        ("gad++", {"drafter_path": "d.pt", "top_beta": 1, "tolerance": 0.0, "eos_argmax": True}),
        ("nar", {"drafter_path": "d.pt", "block_size": 2}),
        ("blockwise", {"block_size": 4, "top_beta": 2, "tolerance": 3.0, "eos_argmax": True, "min_block": 2}),
        ("hybrid", {"drafter_path": "d.pt", "block_size": 3, "full_drafts": True, "min_suffix": 2}),
    ],
)
def test_taken(decoding: str, options: dict[str, Any]) -> None:
    check_drafting_options(config(decoding, **options))


def test_hybrid_takes_a_drafter_or_heads_or_neither() -> None:
    assert resolved_mode(config("hybrid"), [PLAIN, WITH_HEADS]) == "hybrid"
    assert resolved_mode(config("hybrid", drafter_path="d.pt"), [PLAIN]) == "hybrid"
    assert resolved_mode(config("hybrid"), [PLAIN]) == "hybrid"
    assert resolved_mode(config("hybrid", block_size=3), [WITH_HEADS]) == "hybrid"
    with pytest.raises(
        AggdecError, match=r"--block-size 3 is for .* --drafter-path, or give a model with proposal heads"
    ):
        resolved_mode(config("hybrid", block_size=3), [PLAIN])
    assert heads_to_use(config("hybrid"), [PLAIN]) == 0
    assert heads_to_use(config("hybrid"), [PLAIN, WITH_HEADS]) == 6
