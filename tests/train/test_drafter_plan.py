"""How much is distilled and trained, by what the trial has measured."""

from pathlib import Path

import pytest

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.train.drafter.plan import Measured, Plan, Trial, describe, plan_of
from fairseq_aggdec.train.drafter.recipe import AVERAGED, SAVES, TOKENS


@pytest.fixture
def data(toy_data: Path) -> DataBin:
    return DataBin.find(toy_data)


def plan(
    data: DataBin,
    seconds: float,
    token: float,
    sentence: float,
    update: float,
    start: float = 0,
    save: float = 1e-6,
) -> Plan:
    return plan_of(
        data,
        Trial(token, sentence, update, start, save, Measured(4, 2.0, 0.5), True),
        seconds,
        None,
    )


def test_all_stages_take_the_time_that_is_left_and_distillation_a_third_of_it(
    data: DataBin,
) -> None:
    pairs, tokens = len(data.source("train")), int(data.source("train").sizes.sum())
    sentence = 200 / (10 * len(data.source("valid")))
    slow = plan(data, 60 * 34.5, 1800 / tokens, sentence, update=2.0, start=60, save=3)
    assert slow.sentences["train"] == pytest.approx(pairs / 3, rel=0.1)
    assert (slow.measured, slow.saves) == (len(data.source("valid")), SAVES)
    assert slow.seconds == pytest.approx(
        {"distil": 600, "train": 60 + 1200, "measure": 200}, rel=0.25
    )
    assert sum(slow.seconds.values()) == pytest.approx(60 * 34.5, rel=0.01)
    fast = plan(data, 60 * 34.5, 300 / tokens, sentence, update=2.0, start=60, save=3)
    assert fast.sentences["train"] == pairs
    assert sum(fast.seconds.values()) == pytest.approx(60 * 34.5, rel=0.01)
    said = describe(fast, pairs)
    assert f"{pairs} of {pairs} training sentences" in said
    assert f"train    about 26 minutes   {fast.updates} updates in bfloat16" in said
    assert (
        "faster than greedy, gad will need about 4.0 tokens an iteration, with drafts of 4"
        in said
    )


def test_in_three_minutes_few_sentences_are_measured_and_few_checkpoints_saved(
    data: DataBin,
) -> None:
    """All of them took six times as long as the training."""
    found = plan(data, 120, token=0.001, sentence=0.5, update=0.5, start=15, save=4)
    assert (found.saves, found.measured) == (AVERAGED, 3)
    assert sum(found.seconds.values()) == pytest.approx(120, rel=0.01)


def test_a_distillation_that_took_longer_leaves_fewer_updates(data: DataBin) -> None:
    found = plan(data, 1200, token=0.001, sentence=0.01, update=1.0, start=30, save=1)
    left = found.seconds["train"] + found.seconds["measure"]
    assert found.fitting(left - 300).updates == found.updates - 300
    assert 0 < found.fitting(-60).updates < found.updates / 10


def test_no_more_is_distilled_than_training_reads_once(data: DataBin) -> None:
    pairs, tokens = len(data.source("train")), int(data.source("train").sizes.sum())
    # a token costs training ten times as much
    found = plan(
        data, 3600, token=600 / tokens, sentence=1e-6, update=6000 * TOKENS / tokens
    )
    assert found.sentences["train"] == round(pairs * 6 / 11)
