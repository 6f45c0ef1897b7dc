"""The drafter as a whole: what a training computes, at which prefixes, and its architectures."""

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from omegaconf import OmegaConf
from torch import Tensor

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.nar_drafter import (
    Blocks,
    NarDrafterConfig,
    NarDrafterModel,
    fixed_prefix_lengths,
    random_prefix_lengths,
)
from tests.models.drafter_inputs import K, batch, drafter, prefixes
from tests.support.random_models import dictionary, random_model, save_base

WORDS = dictionary(20)


@pytest.mark.parametrize("shape", ["causal, pre-norm sinusoidal", "bidirectional"])
def test_both_passes_have_the_same_dropout(shape: str) -> None:
    """With nothing revealed the second pass gives the very tokens of the first."""
    model = drafter(shape, dropout=0.4, attention_dropout=0.2, activation_dropout=0.1).train()
    source, tokens = batch([6, 9]), prefixes(2, 6)
    blocks = Blocks(torch.tensor([[0, 3], [5, 2]]), torch.full((2, 2, K), 7), torch.ones(2, 2, K, dtype=torch.bool))
    first: list[Tensor] = []

    def reveal(predicted: Tensor) -> Tensor:
        first.append(predicted)
        return torch.zeros_like(predicted, dtype=torch.bool)

    torch.manual_seed(1)
    logits, trained = model(**source, prev_output_tokens=tokens, blocks=blocks, reveal=reveal)
    assert bool(trained.all())
    assert torch.equal(model.decoder.best_tokens(logits.detach()), first[0].flatten())
    again, _ = model(**source, prev_output_tokens=tokens, blocks=blocks, reveal=reveal)
    assert not torch.equal(again, logits)
    assert logits.requires_grad


def architecture(cfg: NarDrafterConfig) -> list[Any]:
    """What decides what is computed."""
    names = ("embed_dim", "ffn_embed_dim", "layers", "attention_heads", "normalize_before", "learned_pos")
    sides = [[getattr(part, name) for name in names] for part in (cfg.encoder, cfg.decoder)]
    return [*sides, cfg.activation_fn, cfg.share_all_embeddings, cfg.no_scale_embedding]


@pytest.mark.parametrize("written", ["flat", "in a group", "without groups"])
def test_what_is_not_given_is_the_verifiers(written: str, tmp_path: Path) -> None:
    """On a command line and in YAML; only dropout belongs to the training."""
    shape: dict[str, Any] = {"decoder_layers": 3, "encoder_normalize_before": True, "share_all_embeddings": True}
    shape |= {"dropout": 0.2, "activation_fn": "gelu", "no_scale_embedding": True, "encoder_learned_pos": True}
    verifier = str(save_base(random_model(1, WORDS, WORDS, **shape), tmp_path / "v.pt", **shape))
    given: dict[str, Any] = {"arch": "nar_drafter", "encoder_from": verifier, "max_source_positions": 1024}
    cfg: Any = {
        "flat": Namespace(**given, decoder_layers=1),
        "in a group": OmegaConf.create({**given, "decoder": {"layers": 1}}),
        "without groups": OmegaConf.create({**given, "decoder_layers": 1}),
    }[written]
    ARCH_CONFIG_REGISTRY["nar_drafter"](cfg)
    cfg = NarDrafterConfig.from_namespace(cfg)
    own = NarDrafterConfig.from_namespace(Namespace(**vars(read_checkpoint(verifier)["cfg"]["model"])))
    own.decoder.layers = 1
    assert architecture(cfg) == architecture(own)
    assert (cfg.encoder_from, cfg.decoder.output_dim) == (verifier, 16)
    assert (cfg.dropout, cfg.max_source_positions) == (0.1, 64)


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"adaptive_softmax_cutoff": "5,10"}, "--adaptive-softmax-cutoff"),
        ({"block_size": 0}, "--block-size"),
        ({"mask_source_copy": True, "no_token_positional_embeddings": True}, "--mask-source-copy"),
    ],
)
def test_options_that_the_decoder_cannot_honour(changes: dict[str, Any], option: str) -> None:
    with pytest.raises(AggdecError, match=option):
        drafter("causal, post-norm sinusoidal", **changes)


def test_dictionaries_that_the_verifiers_encoder_does_not_share_are_refused_in_a_line(tmp_path: Path) -> None:
    verifier = str(save_base(random_model(1, WORDS, WORDS, share_all_embeddings=True), tmp_path / "v.pt"))
    cfg = Namespace(encoder_from=verifier, share_all_embeddings=True)
    ARCH_CONFIG_REGISTRY["nar_drafter"](cfg)
    task = SimpleNamespace(source_dictionary=WORDS, target_dictionary=dictionary(7))
    with pytest.raises(AggdecError, match=r"--encoder-from .*v.pt: --share-all-embeddings requires a joined dict"):
        NarDrafterModel.build_model(cfg, task)


def test_prefix_lengths_are_uniform_on_0_to_t_and_spread_within_a_sentence() -> None:
    torch.manual_seed(1)
    drawn = random_prefix_lengths(torch.full((20000,), 5), 3)  # 5 tokens with EOS, so 0 to 4
    for block in range(3):
        shares = drawn[:, block].bincount(minlength=5) / len(drawn)
        assert (shares - 0.2).abs().max() < 0.015
    lengths = torch.randint(4, 30, (500,))
    drawn = random_prefix_lengths(lengths, 4)
    assert bool((drawn < lengths[:, None]).all())
    assert bool((drawn.sort(dim=1).values.diff(dim=1) > 0).all())  # all different, as there is room
    short = random_prefix_lengths(torch.tensor([1, 2]), 4)
    assert short[0].tolist() == [0, 0, 0, 0]
    assert sorted(short[1].tolist()) == [0, 0, 1, 1]


def test_prefix_lengths_of_validation_depend_on_the_sentence_alone() -> None:
    ids, lengths = torch.arange(1000), torch.arange(1000) % 40 + 1
    all_at_once = fixed_prefix_lengths(ids, lengths, 4)
    some = torch.tensor([7, 998, 3])
    assert torch.equal(fixed_prefix_lengths(some, lengths[some], 4), all_at_once[some])
    eight = fixed_prefix_lengths(ids, torch.full((1000,), 8), 1).flatten().bincount(minlength=8)
    assert (eight / 1000 - 1 / 8).abs().max() < 0.01
