"""From options to the criterion."""

import math
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_aggdec.decoding.verification import EXACT, Acceptance, TopBeta, WithinDistance
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.acceptance_options import acceptance_of, check_acceptance_options, values_of
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig
from tests.random_models import dictionary

WORDS = dictionary(96)  # 100 symbols
EOS = WORDS.eos()


def of(mode: str, symbols: Dictionary = WORDS, **options: Any) -> Any:
    return acceptance_of(mode, AggressiveTranslationConfig(decoding=mode, **options), symbols, 8)


def test_criteria_of_gad() -> None:
    assert of("gad") is EXACT
    assert of("gad++") == Acceptance(TopBeta(3, 1.0)), "the papers' high-quality setting"
    assert of("gad++", top_beta=5, tolerance=3.0, eos_argmax=True) == Acceptance(TopBeta(5, 3.0), strict=(EOS,))
    assert of("gad++", top_beta=1).is_exact
    assert of("gad++", tolerance=0.0).is_exact
    assert of("gad++", min_block=4) == Acceptance(TopBeta(3, 1.0), minimum=4)


def test_criteria_of_blockwise() -> None:
    assert of("blockwise", min_block=1).is_exact
    assert of("blockwise", top_beta=2) == Acceptance(TopBeta(2, math.inf)), "papers/004 §5.1"
    assert of("blockwise", tolerance=0.5) == Acceptance(TopBeta(100, 0.5))
    assert of("blockwise", min_block=8, eos_argmax=True) == Acceptance(minimum=8, strict=(EOS,))


def test_distances_are_between_numbers() -> None:
    symbols = Dictionary()
    for value in ("0", "17", "255", "x7", "²"):
        symbols.add_symbol(value)
    found = of("blockwise", symbols, accept_distance=2.0).criterion
    assert isinstance(found, WithinDistance)
    assert found.distance == 2.0
    assert found.values[4:7].tolist() == [0, 17, 255]
    assert bool(found.values[[0, 1, 2, 3, 7, 8]].isnan().all())
    assert torch.equal(values_of(["5", "-1"]).isnan(), torch.tensor([False, True]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_beta": 101}, "--top-beta 101: the target dictionary has only 100 symbols"),
        ({"min_block": 9}, "--min-block 9: an iteration commits at most 8 tokens here"),
        ({"accept_distance": 1.0}, "--accept-distance: the target dictionary has no numbers"),
    ],
)
def test_refused_once_the_model_is_known(options: dict[str, Any], message: str) -> None:
    for mode in ("gad++", "blockwise"):
        with pytest.raises(AggdecError, match=message):
            of(mode, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": math.nan}, "--tolerance nan"),
        ({"accept_distance": 1.0, "top_beta": 2}, "--accept-distance does not go with --top-beta"),
    ],
)
def test_values_without_meaning(options: dict[str, Any], message: str) -> None:
    with pytest.raises(AggdecError, match=message):
        check_acceptance_options(AggressiveTranslationConfig(decoding="blockwise", **options))
