"""What the task decides by itself; the command line's tests are in tests/cli."""

import gc
import logging
from argparse import ArgumentParser, Namespace
from types import SimpleNamespace
from typing import Any

import pytest
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks.translation import TranslationTask

from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.tasks.aggressive import aggressive
from fairseq_aggdec.tasks.aggressive_translation import (
    AggressiveTranslationConfig,
    AggressiveTranslationTask,
)
from tests.support.helpers import refused_with
from tests.support.random_models import dictionary, model_of_shape, random_batch

VOCABULARY = dictionary(12)


@pytest.fixture
def model() -> FairseqEncoderDecoderModel:
    return model_of_shape("post-norm sinusoidal", 1, VOCABULARY, eos_share=0.1)


def task(decoding: str, **options: Any) -> AggressiveTranslationTask:
    config = AggressiveTranslationConfig(decoding=decoding, **options)
    return AggressiveTranslationTask(config, VOCABULARY, VOCABULARY)


def test_beam_is_the_default_and_stock_fairseq_as_is_scoring(
    model: FairseqEncoderDecoderModel,
) -> None:
    assert AggressiveTranslationConfig().decoding == "beam"
    generator = task("beam").build_generator([model], Namespace(beam=3))
    assert type(generator) is SequenceGenerator
    assert generator.beam_size == 3
    allowed = {
        "sampling": True,
        "nbest": 2,
        "diversity_rate": -1,
        "prefix_allowed_tokens_fn": lambda *_: [4],
    }
    task("beam").build_generator([model], Namespace(**allowed))
    scorer = task("iad").build_generator([model], Namespace(score_reference=True))
    assert isinstance(scorer, SequenceScorer)


def test_the_beam_is_set_to_one_where_the_closing_line_reads_it_but_for_a_search_by_beam(
    model: FairseqEncoderDecoderModel,
) -> None:
    options = Namespace(beam=5)
    task("iad").build_generator([model], options)
    assert options.beam == 1
    options = Namespace(beam=3, nbest=2)
    generator = task("aggressive-beam").build_generator([model], options)
    assert isinstance(generator, AggressiveBeamGenerator)
    assert (generator.beam_size, options.beam) == (3, 3)


def test_the_totals_of_a_task_that_is_gone_are_logged_once(
    model: FairseqEncoderDecoderModel, caplog: pytest.LogCaptureFixture
) -> None:
    """As where fairseq-interactive ends, whose log may be closed by then."""
    caplog.set_level("INFO")
    mine = task("iad")
    generator = mine.build_generator([model], Namespace())
    mine.inference_step(generator, [model], random_batch(1, VOCABULARY, [3, 5]))
    assert "sentences" not in caplog.text
    del mine
    gc.collect()
    assert caplog.text.count("--decoding iad: 2 sentences") == 1
    assert logging.raiseExceptions


def test_a_task_that_is_registered_without_its_dataclass() -> None:
    mine = aggressive(TranslationTask)
    setattr(mine, "__dataclass", None)
    with refused_with(
        r"task AggressiveTranslationTask: .* dataclass=TASK\.config_class"
    ):
        mine.add_args(ArgumentParser())


def test_a_shard_out_of_range_and_data_that_are_not_there_are_named() -> None:
    for data, message in (
        ("", "no data folder given"),
        ("/nowhere:/elsewhere", "/nowhere: no such data folder"),
    ):
        with refused_with(message):
            AggressiveTranslationTask.setup_task(AggressiveTranslationConfig(data=data))
    with refused_with("--shard-id 2"):
        task("iad", num_shards=2, shard_id=2).get_batch_iterator(SimpleNamespace())
