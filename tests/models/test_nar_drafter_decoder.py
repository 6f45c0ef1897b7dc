"""The drafter's forward pass against fairseq's own layers under one big mask, and what it must not depend on."""

import pytest
import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor

from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.nar_drafter_decoder import TransitionHead
from tests.models.drafter_inputs import WORDS, K, batch, drafter, prefixes
from tests.support.random_models import DRAFTER_SHAPES


def by_stock_layers(model: NarDrafterModel, source: dict[str, Tensor], prefix: Tensor) -> Tensor:
    """One sentence, one block, nothing shared: fairseq's layers over prefix and masks in a row, under a square mask.

    `source`: a batch of one; `prefix`: start symbol and y1..yp. Returns k x V.
    """
    decoder, length = model.decoder, len(prefix)
    encoder_out = model.encoder(**source)
    positions = torch.arange(length + K)
    masks = decoder.mask_inputs(positions[None, length:], encoder_out)[0]
    x = torch.cat([decoder.embed(prefix), masks])
    table = decoder.embed_positions
    if isinstance(table, SinusoidalPositionalEmbedding):
        x = x + table.get_embedding(100, x.size(-1), WORDS.pad())[WORDS.pad() + 1 + positions]
    elif table is not None:
        x = x + table.weight[WORDS.pad() + 1 + positions]
    if decoder.layernorm_embedding is not None:
        x = decoder.layernorm_embedding(x)
    hidden = torch.zeros(length + K, length + K)
    if decoder.is_causal:
        hidden[:length] = torch.full((length + K, length + K), -torch.inf).triu(1)[:length]
    x = x[:, None]
    for layer in decoder.layers:
        x = layer(x, encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0], self_attn_mask=hidden)[0]
    if decoder.layer_norm is not None:
        x = decoder.layer_norm(x)
    if decoder.project_out_dim is not None:
        x = decoder.project_out_dim(x)
    return decoder.output_layer(x[length:, 0])


@pytest.mark.parametrize("shape", DRAFTER_SHAPES)
@torch.no_grad()
def test_equals_stock_layers(shape: str) -> None:
    """Sentences of different lengths in one batch, and every prefix length at once."""
    model, source, tokens = drafter(shape), batch([3, 7, 5]), prefixes(3, 5)
    lengths = torch.arange(5).expand(3, -1)
    features = model.decoder(tokens, model.encode(**source), lengths)
    logits = model.decoder.output_layer(features)  # B x R x k x V
    for row in range(3):
        alone = source["src_tokens"][row][source["src_tokens"][row].ne(WORDS.pad())][None]
        one = {"src_tokens": alone, "src_lengths": torch.tensor([alone.size(1)])}
        for length in range(5):
            expected = by_stock_layers(model, one, tokens[row, : length + 1])
            torch.testing.assert_close(logits[row, length], expected, atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_revealed_positions_show_the_target() -> None:
    """A block with everything revealed reads the same as those tokens; with nothing revealed, masks."""
    model, source, tokens = drafter("causal, post-norm sinusoidal"), batch([6, 4]), prefixes(2, 4)
    lengths = torch.tensor([[1, 3], [0, 2]])
    gold = torch.randint(4, 24, (2, 2, K), generator=torch.Generator().manual_seed(1))
    reading = model.decoder.read(tokens, model.encode(**source))
    plain = model.decoder.draft(reading, lengths)
    nothing = model.decoder.draft(reading, lengths, torch.zeros(2, 2, K, dtype=torch.bool), gold)
    assert torch.equal(plain, nothing)
    one = torch.zeros(2, 2, K, dtype=torch.bool)
    one[0, 1, 2] = True
    shown = model.decoder.draft(reading, lengths, one, gold)
    differs = (shown != plain).any(-1).any(-1)
    assert differs.tolist() == [[False, True], [False, False]]
    other = gold.clone()
    other[~one] = WORDS.unk()
    assert torch.equal(model.decoder.draft(reading, lengths, one, other), shown)


@torch.no_grad()
def test_a_new_head_changes_nothing_and_a_trained_one_looks_at_the_token_before() -> None:
    head, x, before = TransitionHead(16, 8), torch.randn(2, 3, 16), torch.randn(2, 3, 16)
    assert torch.equal(head(x, before), x)
    torch.nn.init.normal_(head.out.weight)
    hidden = (before @ head.before.weight.T + x @ head.here.weight.T + head.here.bias).clamp(min=0)
    torch.testing.assert_close(head(x, before), x + hidden @ head.out.weight.T, atol=1e-5, rtol=1e-5)
