"""Faults of the engine that the commands which compare outputs must find, on whatever it computes with."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from fairseq_aggdec.engine import engines
from fairseq_aggdec.engine.decoder import Decoder


def blocks_see_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drafted token of a block of three and more is judged with the draft behind it in sight."""
    sighted = Decoder.features

    def features(self: Decoder, block: Any, starts: Any, last_start: int, **options: Any) -> Any:
        if block is not None and block.size(1) > 2:
            options["reach"] = (starts + block.size(1) - 1)[:, None].expand(block.shape)
        return sighted(self, block, starts, last_start, **options)

    monkeypatch.setattr(Decoder, "features", features)
    monkeypatch.setattr(engines, "decoder_objection", lambda engine, decoder: None)  # or the engine is not used


def branches_see_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes of a tree see those of other branches."""
    alone = Decoder.score_tree

    def score_tree(self: Decoder, block: Any) -> Any:
        first = torch.arange(block.paths.size(1))  # whatever has the first slots
        paths = torch.where(first < block.positions[:, None], first, block.paths)
        return alone(self, replace(block, paths=paths))

    monkeypatch.setattr(Decoder, "score_tree", score_tree)
    monkeypatch.setattr(engines, "decoder_objection", lambda engine, decoder: None)
