"""How much is distilled and trained, by what the trial has measured."""

from pathlib import Path

import pytest

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.train.drafter.plan import Costs, Plan, describe, plan_of, shortened
from fairseq_aggdec.train.drafter.recipe import AVERAGED, SAVES, TOKENS


@pytest.fixture
def data(toy_data: Path) -> DataBin:
    return DataBin.find(toy_data)


DECODINGS = 10


def plan(data: DataBin, costs: Costs, minutes: float, bf16: bool = False) -> Plan:
    return plan_of(data, costs, minutes, None, bf16, DECODINGS)


def test_all_stages_take_the_time_that_is_left_and_distillation_a_third_of_it(data: DataBin) -> None:
    pairs, tokens = len(data.source("train")), int(data.source("train").sizes.sum())
    sentence = 200 / (DECODINGS * len(data.source("valid")))
    slow = plan(data, Costs(token=1800 / tokens, sentence=sentence, update=2.0, start=60, save=3), 34.5)
    assert slow.sentences["train"] == pytest.approx(pairs / 3, rel=0.1)
    assert (slow.measured, slow.saves) == (len(data.source("valid")), SAVES)
    assert slow.minutes == pytest.approx({"distil": 10, "start": 1, "train": 20, "measure": 200 / 60}, rel=0.25)
    assert sum(slow.minutes.values()) == pytest.approx(34.5, rel=0.01)
    fast = plan(data, Costs(token=300 / tokens, sentence=sentence, update=2.0, start=60, save=3), 34.5, bf16=True)
    assert fast.sentences["train"] == pairs
    assert sum(fast.minutes.values()) == pytest.approx(34.5, rel=0.01)
    assert f"{pairs} of {pairs} training sentences" in describe(fast, pairs)
    assert f"train    about 25 minutes   {fast.updates} updates in bfloat16" in describe(fast, pairs)


def test_in_three_minutes_few_sentences_are_measured_and_few_checkpoints_saved(data: DataBin) -> None:
    """All of them took six times as long as the training."""
    costs = Costs(token=0.001, sentence=0.5, update=0.5, start=15, save=4)
    found = plan(data, costs, minutes=2)
    assert (found.saves, found.measured) == (AVERAGED, 3)
    assert sum(found.minutes.values()) == pytest.approx(2, rel=0.01)


def test_a_distillation_that_took_longer_leaves_fewer_updates(data: DataBin) -> None:
    found = plan(data, Costs(token=0.001, sentence=0.01, update=1.0, start=30, save=1), 20)
    left = found.minutes["start"] + found.minutes["train"] / 2 + found.minutes["measure"]
    assert shortened(found, left).updates == round(found.updates / 2)
    assert shortened(found, 100).updates == found.updates
    assert 0 < shortened(found, -1).updates < found.updates / 10


def test_no_more_is_distilled_than_training_reads_once(data: DataBin) -> None:
    pairs, tokens = len(data.source("train")), int(data.source("train").sizes.sum())
    # a token costs training ten times as much
    costs = Costs(token=600 / tokens, sentence=1e-6, update=6000 * TOKENS / tokens, start=0, save=1e-6)
    assert plan(data, costs, minutes=60).sentences["train"] == round(pairs * 6 / 11)
