"""Models that are measured: when they are loaded and freed, their memory, and drafts of a given quality."""

import gc
import weakref
from dataclasses import replace
from statistics import mean

import pytest
import torch

from fairseq_aggdec.generation.edit_ratio import edit_ratio
from fairseq_aggdec.lab.bench.memory import peak_memory
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.oracle import edited, wrong_positions
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.rounds import decode_once
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import OracleSettings
from fairseq_aggdec.lab.verify.differences import NEAR_TIES, near_tie_of
from tests.lab.bench.tiny import LENGTH, tiny_subject


def test_a_precision_is_loaded_once_and_models_are_gone_at_the_end(
    tiny: RandomModel,
) -> None:
    """Or those of several precisions would not fit into memory; tasks live as long as the program."""
    with Runs(replace(tiny_subject(tiny), precision="exact")) as runs:
        runs.runner(Mode.parse("gad@fp32"), 1).decode(0)
        task, (model,) = runs.load(runs.precision(Mode.parse("iad")))
        other_task, (other,) = runs.load(runs.precision(Mode.parse("iad@fp32")))
        _, (stock,) = runs.load("bf16", stock=True)
        assert runs.load("exact")[0] is task
        assert runs.load("fp32", stock=True)[0] is other_task
    assert [each.cfg.bit_exact for each in (task, other_task)] == [True, False]
    dtypes = [next(each.parameters()).dtype for each in (model, other, stock)]
    assert dtypes == [torch.float32, torch.float32, torch.bfloat16]
    gone = weakref.ref(other)
    del runs, model, other, stock
    gc.collect()
    assert gone() is None


def test_the_same_bits_are_those_of_half_precision_on_a_gpu(tiny: RandomModel) -> None:
    with Runs(replace(tiny_subject(tiny), device="meta")) as runs:
        task, (model,) = runs.load("exact")
        assert (task.cfg.bit_exact, next(model.parameters()).dtype) == (
            True,
            torch.float16,
        )
        assert near_tie_of("exact", "meta") == NEAR_TIES["fp16"]


def test_peaks_of_another_process(tiny: RandomModel) -> None:
    peaks = peak_memory(tiny_subject(tiny), Mode.parse("gad"), [1, 4], threads=1)
    assert len(peaks) == 2
    for host, device in peaks:
        assert 50e6 < host < 4e9
        assert device is None


@pytest.mark.parametrize("ratio", [0.0, 0.3])
def test_edited_texts_have_the_edit_ratio_asked_for(ratio: float) -> None:
    texts = [list(range(4 + number, 29 + number)) for number in range(200)]
    ratios = [
        edit_ratio(edited(text, ratio, range(4, 400), number), text)
        for number, text in enumerate(texts)
    ]
    assert mean(ratios) == pytest.approx(ratio, rel=0.05)


@pytest.mark.parametrize("accepted", [1.0, 2.5])
def test_drafts_fail_as_often_as_asked_for(accepted: float) -> None:
    """Counts what the loop does: up to the next wrong token, or the block's end and the bonus token."""
    block, length, iterations = 8, 500, 0
    for number in range(20):
        wrong, position = set(wrong_positions(length, accepted, block, number)), 0
        while position < length:
            position += 1 + next(
                (k for k in range(block) if position + k in wrong), block
            )
            iterations += 1
    assert 20 * length / iterations == pytest.approx(accepted, rel=0.05)


@pytest.mark.parametrize(
    ("mode", "good", "bad"),
    [
        ("iad", OracleSettings(0.0, 1.0), OracleSettings(0.9, 1.0)),
        ("gad", OracleSettings(0.1, 8.0), OracleSettings(0.1, 2.0)),
        ("speculative+whole", OracleSettings(0.1, 8.0), OracleSettings(0.1, 2.0)),
    ],
)
def test_decoding_with_an_oracle_is_lossless_and_as_fast_as_it_says(
    mode: str, good: OracleSettings, bad: OracleSettings, tiny: RandomModel
) -> None:
    iterations = []
    for settings in (good, bad):
        with Runs(tiny_subject(tiny, oracle=settings)) as runs:
            greedy, drafted = (
                decode_once(runs.runner(Mode.parse(name), 2)).outputs
                for name in ("greedy", mode)
            )
        for number, output in greedy.items():
            assert drafted[number].tokens == output.tokens
            assert len(output.tokens) == LENGTH + 1
        iterations.append(
            mean(
                output.stats.iterations
                for output in drafted.values()
                if output.stats is not None
            )
        )
    assert iterations[0] < LENGTH
    assert iterations[0] < iterations[1] <= LENGTH + 1
