"""Models that are measured: when they are loaded and freed, their memory, and drafts of a given quality."""

import gc
import weakref
from dataclasses import replace
from statistics import mean

import pytest
import torch

from fairseq_aggdec.generation.edit_ratio import edit_ratio
from fairseq_aggdec.lab.bench.memory import peak_memory
from fairseq_aggdec.lab.bench.modes import ModeSpec
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
    with Runs(tiny_subject(tiny)) as runs:
        runs.runner(ModeSpec.parse("gad"), 1).decode(0)
        exact = runs.load("exact")
        single = runs.load("fp32")
        stock = runs.load("bf16", stock=True)
        assert runs.load("exact")[0] is exact[0]
        assert runs.load("fp32", stock=True)[0] is single[0]
    assert exact[0].cfg.bit_exact
    assert not single[0].cfg.bit_exact
    dtypes = [next(model.parameters()).dtype for _, (model,) in (exact, single, stock)]
    assert dtypes == [torch.float32, torch.float32, torch.bfloat16]
    gone = weakref.ref(single[1][0])
    del single
    gc.collect()
    assert gone() is None


def test_the_same_bits_are_those_of_half_precision_on_a_gpu(tiny: RandomModel) -> None:
    with Runs(replace(tiny_subject(tiny), device="meta")) as runs:
        task, (model,) = runs.load("exact")
        assert task.cfg.bit_exact
        assert next(model.parameters()).dtype == torch.float16
        assert near_tie_of("exact", "meta") == NEAR_TIES["fp16"]


def test_peaks_of_another_process(tiny: RandomModel) -> None:
    peaks = peak_memory(
        tiny_subject(tiny),
        ModeSpec.parse("gad"),
        [1, 4],
        threads=1,
    )
    assert len(peaks) == 2
    for host, device in peaks:
        assert 50e6 < host < 4e9
        assert device is None


@pytest.mark.parametrize("ratio", [0.0, 0.3])
def test_edited_texts_have_the_edit_ratio_asked_for(ratio: float) -> None:
    ratios = []
    for index in range(200):
        text = list(range(4 + index, 29 + index))
        other = edited(text, ratio, range(4, 400), index)
        ratios.append(edit_ratio(other, text))
    assert mean(ratios) == pytest.approx(ratio, rel=0.05)


@pytest.mark.parametrize("accepted", [1.0, 2.5])
def test_drafts_fail_as_often_as_asked_for(accepted: float) -> None:
    """Counts what the loop does: up to the next wrong token, or the block's end and the bonus token."""
    block = 8
    length = 500
    iterations = 0
    for sentence in range(20):
        wrong = set(wrong_positions(length, accepted, block, sentence))
        position = 0
        while position < length:
            drafted = range(position, position + block)
            position += 1 + next(
                (k for k, place in enumerate(drafted) if place in wrong), block
            )
            iterations += 1
    assert 20 * length / iterations == pytest.approx(accepted, rel=0.05)


@pytest.mark.parametrize(
    "mode, good, bad",
    [
        ("iad", (0.0, 1.0), (0.9, 1.0)),
        ("gad", (0.1, 8.0), (0.1, 2.0)),
        ("speculative+whole", (0.1, 8.0), (0.1, 2.0)),
    ],
)
def test_decoding_with_an_oracle_is_lossless_and_as_fast_as_it_says(
    mode: str, good: tuple, bad: tuple, tiny: RandomModel
) -> None:
    iterations = []
    for settings in (good, bad):
        oracle = OracleSettings(*settings)
        with Runs(tiny_subject(tiny, oracle=oracle)) as runs:
            greedy, drafted = (
                decode_once(runs.runner(ModeSpec.parse(name), 2)).outputs
                for name in ("greedy", mode)
            )
        for sentence, output in greedy.items():
            assert drafted[sentence].tokens == output.tokens
            assert len(output.tokens) == LENGTH + 1
        stats = [output.stats for output in drafted.values() if output.stats]
        iterations.append(mean(one.iterations for one in stats))
    assert iterations[0] < LENGTH
    assert iterations[0] < iterations[1] <= LENGTH + 1
