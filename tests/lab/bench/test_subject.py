"""Models that are measured: when they are loaded and freed, and the memory that a mode takes."""

import gc
import weakref
from dataclasses import replace

import torch

from fairseq_aggdec.lab.bench.memory import peak_memory
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.verify.differences import NEAR_TIES, near_tie_of
from tests.lab.bench.tiny import tiny_subject


def test_a_precision_is_loaded_once_and_models_are_gone_at_the_end(tiny: RandomModel) -> None:
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
        assert (task.cfg.bit_exact, next(model.parameters()).dtype) == (True, torch.float16)
        assert near_tie_of("exact", "meta") == NEAR_TIES["fp16"]


def test_peaks_of_another_process(tiny: RandomModel) -> None:
    peaks = peak_memory(tiny_subject(tiny), Mode.parse("gad"), [1, 4], threads=1)
    assert len(peaks) == 2
    for host, device in peaks:
        assert 50e6 < host < 4e9
        assert device is None
