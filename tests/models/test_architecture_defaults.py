"""Filling in what the user left out, in flat options and in groups."""

from argparse import Namespace

from omegaconf import OmegaConf

from fairseq_aggdec.models.architecture_defaults import set_defaults


def test_what_was_given_stays_and_the_rest_is_filled_in() -> None:
    args = Namespace(encoder_layers=7, dropout=None)
    set_defaults(args, encoder_layers=2, decoder_layers=3, dropout=0.1)
    assert vars(args) == {"encoder_layers": 7, "decoder_layers": 3, "dropout": 0.1}


def test_groups_of_a_yaml_file_are_filled_in_place() -> None:
    cfg = OmegaConf.create({"encoder": {"layers": 7}, "decoder": {}, "dropout": 0.3})
    set_defaults(cfg, encoder_layers=2, decoder_layers=3, decoder_embed_dim=8, dropout=0.1)
    assert OmegaConf.to_container(cfg) == {
        "encoder": {"layers": 7},
        "decoder": {"layers": 3, "embed_dim": 8},
        "dropout": 0.3,
    }
