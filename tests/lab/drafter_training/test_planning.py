"""How much is distilled and trained, by what the trial has measured."""

from pathlib import Path

import pytest

from fairseq_aggdec.lab.drafter_training.planning import Costs, describe, plan_of
from fairseq_aggdec.lab.drafter_training.recipe import TOKENS
from fairseq_aggdec.shards.data_bin import DataBin


@pytest.fixture
def data(toy_data: Path) -> DataBin:
    return DataBin.find(toy_data)


def test_time_is_spent_and_a_third_of_it_at_most_on_distillation(data: DataBin) -> None:
    pairs, tokens = len(data.source("train")), int(data.source("train").sizes.sum())
    slow = plan_of(data, Costs(token=900 / tokens, sentence=0.5, update=2.0), 30, None, False, measured=240)
    assert slow.sentences == {"train": round(pairs * 2 / 3), "valid": len(data.source("valid"))}
    assert slow.updates == 600
    assert slow.minutes == pytest.approx({"distil": 10, "train": 20, "measure": 2})
    fast = plan_of(data, Costs(token=300 / tokens, sentence=0.5, update=2.0), 30, None, True, measured=240)
    assert fast.sentences["train"] == pairs
    assert fast.updates == 750
    assert f"{pairs} of {pairs} training sentences" in describe(fast, pairs)
    assert "train    about 25 minutes   750 updates in bfloat16" in describe(fast, pairs)


def test_no_more_is_distilled_than_training_reads_once(data: DataBin) -> None:
    pairs, tokens = len(data.source("train")), int(data.source("train").sizes.sum())
    costs = Costs(
        token=1 / tokens, sentence=0.5, update=10 * TOKENS / tokens
    )  # a token costs training ten times as much
    assert plan_of(data, costs, 0.1, None, False, measured=1).sentences["train"] == round(pairs * 6 / 11)
