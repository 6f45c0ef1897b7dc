"""Frozen weights come out of a training as they went in."""

from pathlib import Path

import torch

from tests.random_blockwise import on_base, save_base
from tests.random_models import dictionary, random_model

WORDS = dictionary(20)


def test_frozen_weights_are_saved_exactly_whatever_the_precision(tmp_path: Path) -> None:
    base = random_model(1, WORDS, WORDS)
    model = on_base(save_base(base, tmp_path / "base.pt"), WORDS, WORDS, identity_head=True, freeze_base=True)
    state = model.bfloat16().state_dict()
    for name, value in base.state_dict().items():
        assert torch.equal(state[name], value), name
    assert state["decoder.heads.inner"].dtype == torch.bfloat16
    model.load_state_dict(state, strict=True)  # a training that is resumed, in half precision again
    for name, value in base.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
