"""Tests of `fairseq_aggdec.lab.benchmarking.fairseq_runner`."""

from typing import Any

import pytest
import torch

from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.lab.benchmarking.fairseq_runner import FairseqRunner, runners_of
from fairseq_aggdec.lab.benchmarking.random_models import RandomModel
from fairseq_aggdec.lab.benchmarking.subject import Loaded
from fairseq_aggdec.tasks import loading
from tests.lab.benchmarking.tiny import LENGTH, tiny_subject
from tests.random_models import stock_beam_one

GENERATION: dict[str, Any] = {"min_len": LENGTH, "max_len_a": 0, "max_len_b": LENGTH}


@pytest.fixture(scope="module")
def loaded(tiny: RandomModel) -> Loaded:
    return loading.load(str(tiny.checkpoint), str(tiny.folder), "src", "tgt", drafter_path=str(tiny.drafter))


@pytest.fixture(scope="module")
def batches(tiny: RandomModel, loaded: Loaded) -> list[dict]:
    """Five sentences, two a batch."""
    sentences = [torch.tensor(sentence) for sentence in tiny_subject(tiny).sentences]
    return loading.batches_of(loaded[0], sentences, 2)


def outputs_of(runner: FairseqRunner) -> dict[int, list[int]]:
    decoded = [runner.outputs(number, runner.decode(number)) for number in range(len(runner.batches))]
    return {number: output.tokens for batch in decoded for number, output in batch.items()}


def test_every_mode_decodes_as_it_is_named(loaded: Loaded, batches: list[dict]) -> None:
    """The modes share one task, whose options a later runner must not change for an earlier one."""
    task, models = loaded
    modes = ["beam2", "greedy", "beam1", "iad", "gad++:2:1.5", "gad"]
    runners = runners_of(task, models, batches, modes, **GENERATION)
    assert [runner.mode.name for runner in runners] == modes
    expected = [hypothesis["tokens"].tolist() for b in batches for hypothesis in stock(loaded, b)]
    for runner in runners:
        assert runner.batches == [[0, 1], [2, 3], [4]]
        assert runner.batch_size == 2
        outputs = outputs_of(runner)
        assert sorted(outputs) == list(range(5))
        if runner.mode.name in ("greedy", "beam1", "iad", "gad"):
            assert [outputs[number] for number in range(5)] == expected
    generators = [runner.generator for runner in runners]
    own = [isinstance(generator, AggressiveGenerator) for generator in generators]
    assert own == [False, True, False, True, True, True]
    assert [generators[number].beam_size for number in (0, 2)] == [2, 1]
    assert [generators[number].decoding for number in (1, 3, 4, 5)] == ["greedy", "iad", "gad++", "gad"]


def stock(loaded: Loaded, batch: dict) -> list[dict]:
    task, models = loaded
    return stock_beam_one(models, task.target_dictionary, batch, min_len=LENGTH, max_len_a=0, max_len_b=LENGTH)
