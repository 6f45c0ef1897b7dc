"""Tests of `fairseq_aggdec.lab.benchmarking.memory`."""

from fairseq_aggdec.lab.benchmarking.memory import peak_memory
from fairseq_aggdec.lab.benchmarking.modes import Mode
from fairseq_aggdec.lab.benchmarking.random_models import RandomModel
from tests.lab.benchmarking.tiny import tiny_subject


def test_peaks_of_another_process(tiny: RandomModel) -> None:
    peaks = peak_memory(tiny_subject(tiny), Mode.parse("gad"), [1, 4], threads=1)
    assert len(peaks) == 2
    for host, device in peaks:
        assert 50e6 < host < 4e9
        assert device is None
