"""Tests of `fairseq_aggdec.lab.benchmarking.module_times`."""

import time

import pytest
import torch

from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.lab.benchmarking import module_times


class Slow(BlockDecoder):
    """Sleeps where a decoder would work."""

    def __init__(self) -> None:
        pass


@pytest.fixture
def sleeping(monkeypatch: pytest.MonkeyPatch) -> Slow:
    monkeypatch.setattr(BlockDecoder, "project", lambda self, x: time.sleep(0.02))
    monkeypatch.setattr(BlockDecoder, "features", lambda self: self.project(None))
    return Slow()


def test_nested_calls_are_counted_once(sleeping: Slow) -> None:
    with module_times.measured() as seconds:
        sleeping.features()  # type: ignore[call-arg]
        sleeping.project(torch.empty(0))
    assert list(seconds) == ["verifier's decoder"]
    assert 0.04 <= seconds["verifier's decoder"] < 0.4


def test_a_drafter_that_decodes_alone_is_the_drafter(monkeypatch: pytest.MonkeyPatch, sleeping: Slow) -> None:
    monkeypatch.setattr(DraftDecoder, "score", lambda self: sleeping.project(torch.empty(0)))
    alone = DraftDecoder.__new__(DraftDecoder)
    with module_times.measured() as seconds:
        alone.score()  # type: ignore[call-arg]
    assert list(seconds) == ["drafter"]
