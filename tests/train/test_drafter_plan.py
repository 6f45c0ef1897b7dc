"""How much is distilled and trained, by what the trial has measured."""

from pathlib import Path

import pytest

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.train.drafter.plan import Measured, Plan, Trial, describe, plan_of
from fairseq_aggdec.train.drafter.recipe import AVERAGED, SAVES, TOKENS

MINUTE = 60
SECONDS = 34.5 * MINUTE
ALL = {"token": 0.001, "sentence": 0.01, "update": 1.0, "start": 30, "save": 1}


@pytest.fixture
def data(toy_data: Path) -> DataBin:
    return DataBin.find(toy_data)


def plan(data: DataBin, seconds: float, **measured: float) -> Plan:
    """The plan for this time, and what a trial has measured."""
    drafter = Measured(4, 2.0, 0.5)
    trial = Trial(**(ALL | measured), drafter=drafter, bf16=True)
    return plan_of(data, trial, seconds, None)


def test_all_stages_take_the_time_that_is_left_and_distillation_a_third_of_it(
    data: DataBin,
) -> None:
    sources = data.source("train")
    tokens = int(sources.sizes.sum())
    valid = len(data.source("valid"))
    rest = {"sentence": 20 / valid, "update": 2.0, "start": 60, "save": 3}
    slow = plan(data, SECONDS, token=1800 / tokens, **rest)
    assert slow.sentences["train"] == pytest.approx(len(sources) / 3, rel=0.1)
    assert (slow.measured, slow.saves) == (valid, SAVES)
    seconds = {"distil": 600, "train": 60 + 1200, "measure": 200}
    assert slow.seconds == pytest.approx(seconds, rel=0.25)
    assert sum(slow.seconds.values()) == pytest.approx(SECONDS, rel=0.01)
    fast = plan(data, SECONDS, token=300 / tokens, **rest)
    assert fast.sentences["train"] == len(sources)
    assert sum(fast.seconds.values()) == pytest.approx(SECONDS, rel=0.01)
    said = describe(fast, len(sources))
    for words in (
        f"{len(sources)} of {len(sources)} training sentences",
        f"train    about 26 minutes   {fast.updates} updates in bfloat16",
        "gad will need about 4.0 tokens an iteration, with drafts of 4",
    ):
        assert words in said


def test_in_three_minutes_few_sentences_are_measured_and_few_checkpoints_saved(
    data: DataBin,
) -> None:
    """All of them took six times as long as the training."""
    found = plan(data, 2 * MINUTE, sentence=0.5, update=0.5, start=15, save=4)
    assert (found.saves, found.measured) == (AVERAGED, 3)
    assert sum(found.seconds.values()) == pytest.approx(2 * MINUTE, rel=0.01)


def test_a_distillation_that_took_longer_leaves_fewer_updates(data: DataBin) -> None:
    found = plan(data, 20 * MINUTE)
    left = found.seconds["train"] + found.seconds["measure"]
    assert found.fitting(left - 300).updates == found.updates - 300
    assert 0 < found.fitting(-60).updates < found.updates / 10


def test_no_more_is_distilled_than_training_reads_once(data: DataBin) -> None:
    sources = data.source("train")
    tokens = int(sources.sizes.sum())
    # a token costs training ten times as much
    update = 6000 * TOKENS / tokens
    free = {"sentence": 1e-6, "start": 0, "save": 1e-6}
    found = plan(data, 60 * MINUTE, token=600 / tokens, update=update, **free)
    assert found.sentences["train"] == round(len(sources) * 6 / 11)
