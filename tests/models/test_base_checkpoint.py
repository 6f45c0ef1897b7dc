"""The options that a checkpoint of a Transformer prescribes, and those that it does not."""

from argparse import Namespace
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.base_checkpoint import take_architecture
from tests.random_blockwise import save_base
from tests.random_models import dictionary, random_model

WORDS = dictionary(20)


@pytest.fixture
def base(tmp_path: Path) -> str:
    shape = {"decoder_layers": 3, "encoder_normalize_before": True}
    return str(save_base(random_model(1, WORDS, WORDS, **shape), tmp_path / "base.pt", **shape, dropout=0.2))


def test_flat_options_are_completed(base: str) -> None:
    args = Namespace(encoder_layers=None, attention_dropout=0.4)
    take_architecture(args, base)
    assert (args.encoder_layers, args.decoder_layers, args.decoder_embed_dim) == (2, 3, 16)
    assert (args.encoder_normalize_before, args.decoder_normalize_before) == (True, False)
    assert (args.dropout, args.attention_dropout) == (0.2, 0.4), "a training may choose its own"
    assert args.max_target_positions == 64


def test_learned_positions_come_with_their_number(tmp_path: Path) -> None:
    shape = {"encoder_learned_pos": True, "decoder_learned_pos": True}
    path = str(save_base(random_model(1, WORDS, WORDS, **shape), tmp_path / "base.pt", **shape))
    args = Namespace(max_target_positions=500, max_source_positions=None)
    take_architecture(args, path)
    assert (args.max_source_positions, args.max_target_positions) == (64, 64)


def test_a_difference_is_named(base: str) -> None:
    with pytest.raises(AggdecError, match=r"base.pt: --decoder-layers is 3 there and 6 here"):
        take_architecture(OmegaConf.create({"encoder": {}, "decoder": {"layers": 6}}), base)
