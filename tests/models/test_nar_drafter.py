"""The drafter as a whole: what a training computes, and its architectures."""

from argparse import Namespace

import pytest
import torch
from omegaconf import OmegaConf
from torch import Tensor

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models import nar_drafter
from fairseq_aggdec.models.block_sampling import Blocks
from fairseq_aggdec.models.nar_drafter import NarDrafterConfig
from tests.models.drafter_inputs import K, batch, drafter, prefixes


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


def test_given_as_a_verifier() -> None:
    model = drafter("bidirectional")
    with pytest.raises(AggdecError, match="--drafter-path"):
        model.decoder(prefixes(1, 3), encoder_out=model.encode(**batch([4])), incremental_state={})
    with pytest.raises(AggdecError, match="block_drafting"):
        model(**batch([4]), prev_output_tokens=prefixes(1, 3))


def test_architectures_fill_what_was_left_out() -> None:
    flat = Namespace(encoder_layers=3, decoder_layers=1)
    nar_drafter.nar_drafter_small(flat)
    cfg = NarDrafterConfig.from_namespace(flat)
    assert (cfg.encoder.layers, cfg.decoder.layers) == (3, 1)
    assert (cfg.encoder.embed_dim, cfg.decoder.ffn_embed_dim, cfg.decoder.output_dim) == (256, 1024, 256)
    assert cfg.encoder_from is None
    nested = OmegaConf.create({"encoder": {"layers": 3}, "decoder": {"normalize_before": True}, "encoder_from": "v.pt"})
    nar_drafter.nar_drafter_big(nested)
    cfg = NarDrafterConfig.from_namespace(nested)
    assert (cfg.encoder.layers, cfg.decoder.layers, cfg.decoder.normalize_before) == (3, 6, True)
    assert (cfg.encoder.embed_dim, cfg.decoder.attention_heads, cfg.decoder.output_dim) == (1024, 16, 1024)
    assert cfg.encoder_from == "v.pt"
