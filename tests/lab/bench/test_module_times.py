"""Tests of `fairseq_aggdec.lab.bench.module_times`."""

import time

import pytest
import torch

from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.lab.bench.module_times import measured


def test_a_call_within_a_timed_call_counts_for_the_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockDecoder, "project", lambda self, x: time.sleep(0.02))
    monkeypatch.setattr(BlockDecoder, "features", lambda self: self.project(None))
    decoder = BlockDecoder.__new__(BlockDecoder)
    monkeypatch.setattr(DraftDecoder, "choose", lambda self: decoder.project(torch.empty(0)))
    with measured() as seconds:
        decoder.features()  # type: ignore[call-arg]
        decoder.project(torch.empty(0))
        DraftDecoder.__new__(DraftDecoder).choose()  # type: ignore[call-arg]
    assert list(seconds) == ["verifier's decoder", "drafter"]
    assert 0.04 <= seconds["verifier's decoder"] < 0.4
