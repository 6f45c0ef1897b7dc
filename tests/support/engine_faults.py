"""Faults of the engine that the commands which compare outputs must find, on whatever it computes with."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from fairseq_aggdec.engine import engines
from fairseq_aggdec.engine.runner import Eager


def blocks_see_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drafted token of a block of three and more is judged with the draft after it in sight."""
    sighted = Eager.features

    def features(
        self: Eager, tokens: Any, starts: Any, last_start: int, **options: Any
    ) -> Any:
        if tokens.size(1) > 2:
            options["reach"] = (starts + tokens.size(1) - 1)[:, None].expand(
                tokens.shape
            )
        return sighted(self, tokens, starts, last_start, **options)

    monkeypatch.setattr(Eager, "features", features)
    # or the engine is not used
    monkeypatch.setattr(engines, "decoder_objection", lambda engine, decoder: None)


def branches_see_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes of a tree see those of other branches."""
    alone = Eager.read_tree

    def read_tree(self: Eager, block: Any) -> Any:
        first = torch.arange(block.paths.size(1))  # whatever has the first slots
        paths = torch.where(first < block.positions[:, None], first, block.paths)
        return alone(self, replace(block, paths=paths))

    monkeypatch.setattr(Eager, "read_tree", read_tree)
    monkeypatch.setattr(engines, "decoder_objection", lambda engine, decoder: None)
