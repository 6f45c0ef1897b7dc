"""How much of their drafts the shipped models accept, on the demo's sentences: what makes them fast on any machine."""

from argparse import Namespace
from functools import cache

import pytest

from fairseq_aggdec import load
from fairseq_aggdec.demo.shipped import SHIPPED
from fairseq_aggdec.model import Model
from fairseq_aggdec.tasks.loading import batches_of


@cache
def loaded(task: str) -> Model:
    return load.shipped(task)


@pytest.mark.parametrize(
    "task, decoding, tokens",
    [
        ("gec", "iad", 5.75),
        ("mt", "gad", 4.79),
        ("gec", "aggressive-beam", 2.98),
    ],
)
def test_tokens_an_iteration(task: str, decoding: str, tokens: float) -> None:
    """Within 5 %, of every third sentence; of a beam of 5 that looks 16 prefixes ahead, steps a pass."""
    shown = SHIPPED[task]
    model = loaded(task)
    beam, own = (5, {"budget": 16}) if decoding == "aggressive-beam" else (1, {})
    whole = {} if beam > 1 else {"drafts": "whole"}
    how = model.task.decoding.with_mode(decoding, **whole)
    generator = model.task.build_generator(
        model.models, Namespace(beam=beam), decoding=how, extra_gen_cls_kwargs=own
    )
    lines = (shown.folder / "sentences.txt").read_text("utf-8").splitlines()[::3]
    for batch in batches_of(model.task, [model.encode(line) for line in lines], 1):
        model.task.inference_step(generator, model.models, batch)
    assert generator.totals.committed / generator.totals.iterations == pytest.approx(
        tokens, rel=0.05
    )
