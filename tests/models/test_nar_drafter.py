"""The block drafter: its forward pass against fairseq's layers under one big mask, its training, its architectures."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.modules import SinusoidalPositionalEmbedding
from omegaconf import OmegaConf
from torch import Tensor

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.models.nar_drafter import (
    Blocks,
    NarDrafterConfig,
    NarDrafterModel,
    fixed_prefix_lengths,
    random_prefix_lengths,
)
from fairseq_aggdec.models.nar_drafter_decoder import TransitionHead
from tests.support.helpers import refused_with
from tests.support.random_models import (
    DRAFTER_SHAPES,
    arguments,
    dictionary,
    random_batch,
    random_drafter,
    random_model,
    save_base,
    task_of,
)

WORDS = dictionary(20)
K = 5


def drafter(shape: str, **changes: Any) -> NarDrafterModel:
    return random_drafter(shape, 3, WORDS, changes.pop("block_size", K), **changes)


def batch(lengths: list[int]) -> dict[str, Tensor]:
    return random_batch(1, WORDS, lengths)["net_input"]


def prefixes(rows: int, width: int) -> Tensor:
    tokens = torch.randint(
        WORDS.nspecial,
        len(WORDS),
        (rows, width),
        generator=torch.Generator().manual_seed(5),
    )
    tokens[:, 0] = WORDS.eos()
    return tokens


def by_stock_layers(
    model: NarDrafterModel, source: dict[str, Tensor], prefix: Tensor
) -> Tensor:
    """One sentence, one block, nothing shared: fairseq's layers over prefix and masks in a row, under a square mask.

    `source`: a batch of one; `prefix`: start symbol and y1..yp. Returns k x V.
    """
    decoder = model.decoder
    length = len(prefix)
    encoder_out = model.encoder(**source)
    positions = torch.arange(length + K)
    masks = decoder.mask_inputs(positions[None, length:], encoder_out)[0]
    x = torch.cat([decoder.embed(prefix), masks])
    table = decoder.embed_positions
    if table is not None:
        weights = (
            table.weights
            if isinstance(table, SinusoidalPositionalEmbedding)
            else table.weight
        )
        x = x + weights[WORDS.pad() + 1 + positions]
    if decoder.layernorm_embedding is not None:
        x = decoder.layernorm_embedding(x)
    mask = torch.zeros(length + K, length + K)
    if decoder.is_causal:
        mask[:length] = torch.full((length, length + K), -torch.inf).triu(1)
    x = x[:, None]
    for layer in decoder.layers:
        memory = encoder_out["encoder_out"][0]
        padding = encoder_out["encoder_padding_mask"][0]
        x = layer(x, memory, padding, self_attn_mask=mask)[0]
    for last in (decoder.layer_norm, decoder.project_out_dim):
        x = x if last is None else last(x)
    return decoder.output_layer(x[length:, 0])


@pytest.mark.parametrize("shape", DRAFTER_SHAPES)
@torch.no_grad()
def test_equals_stock_layers(shape: str) -> None:
    """Sentences of different lengths in one batch, and every prefix length at once."""
    model = drafter(shape)
    source = batch([3, 7, 5])
    tokens = prefixes(3, 5)
    reading = model.decoder.read(tokens, model.encode(**source))
    features = model.decoder.draft(reading, torch.arange(5).expand(3, -1))
    logits = model.decoder.output_layer(features)  # B x R x k x V
    for row, words in enumerate(source["src_tokens"]):
        alone = words[words.ne(WORDS.pad())][None]
        one = {"src_tokens": alone, "src_lengths": torch.tensor([alone.size(1)])}
        for length in range(5):
            expected = by_stock_layers(model, one, tokens[row, : length + 1])
            found = logits[row, length]
            torch.testing.assert_close(
                found,
                expected,
                atol=2e-5,
                rtol=1e-4,
            )


@torch.no_grad()
def test_revealed_positions_show_the_target() -> None:
    """A block with everything revealed reads the same as those tokens; with nothing revealed, masks."""
    model = drafter("causal, post-norm sinusoidal")
    lengths = torch.tensor([[1, 3], [0, 2]])
    generator = torch.Generator().manual_seed(1)
    gold = torch.randint(4, 24, (2, 2, K), generator=generator)
    encoded = model.encode(**batch([6, 4]))
    reading = model.decoder.read(prefixes(2, 4), encoded)
    plain = model.decoder.draft(reading, lengths)
    revealed = torch.zeros(2, 2, K, dtype=torch.bool)
    nothing_shown = model.decoder.draft(reading, lengths, revealed, gold)
    assert torch.equal(plain, nothing_shown)
    revealed[0, 1, 2] = True
    shown = model.decoder.draft(reading, lengths, revealed, gold)
    differs = (shown != plain).any(-1).any(-1)
    assert differs.tolist() == [[False, True], [False, False]]
    gold[~revealed] = WORDS.unk()
    again = model.decoder.draft(reading, lengths, revealed, gold)
    assert torch.equal(again, shown)


@torch.no_grad()
def test_a_new_head_changes_nothing_and_a_trained_one_reads_the_token_before() -> None:
    head = TransitionHead(16, 8)
    x = torch.randn(2, 3, 16)
    before = torch.randn(2, 3, 16)
    assert torch.equal(head(x, before), x)
    torch.nn.init.normal_(head.out.weight)
    read = before @ head.before.weight.T
    hidden = (read + x @ head.here.weight.T + head.here.bias).relu()
    expected = x + hidden @ head.out.weight.T
    torch.testing.assert_close(
        head(x, before),
        expected,
        atol=1e-5,
        rtol=1e-5,
    )


@pytest.mark.parametrize("shape", ["causal, pre-norm sinusoidal", "bidirectional"])
def test_both_passes_have_the_same_dropout(shape: str) -> None:
    """With nothing revealed the second pass gives the very tokens of the first."""
    dropouts = {"dropout": 0.4, "attention_dropout": 0.2, "activation_dropout": 0.1}
    model = drafter(shape, **dropouts).train()
    target = torch.full((2, 2, K), 7)
    blocks = Blocks(torch.tensor([[0, 3], [5, 2]]), target, target.bool())
    first: list[Tensor] = []

    def reveal(predicted: Tensor) -> Tensor:
        first.append(predicted)
        return torch.zeros_like(predicted, dtype=torch.bool)

    inputs: Any = {**batch([6, 9]), "prev_output_tokens": prefixes(2, 6)}
    inputs |= {"blocks": blocks, "reveal": reveal}
    logits, trained = model(**inputs)
    assert bool(trained.all())
    assert torch.equal(model.decoder.best_tokens(logits.detach()), first[0].flatten())
    assert not torch.equal(model(**inputs)[0], logits)
    assert logits.requires_grad


def architecture(cfg: NarDrafterConfig) -> list[Any]:
    """What decides what is computed."""
    names = (
        "embed_dim ffn_embed_dim layers attention_heads normalize_before learned_pos"
    )
    sides = [
        getattr(side, name)
        for side in (cfg.encoder, cfg.decoder)
        for name in names.split()
    ]
    return [*sides, cfg.activation_fn, cfg.share_all_embeddings, cfg.no_scale_embedding]


@pytest.mark.parametrize("written", ["flat", "in a group", "without groups"])
def test_what_is_not_given_is_the_verifiers(written: str, tmp_path: Path) -> None:
    """On a command line and in YAML; only dropout belongs to the training."""
    shape: Any = {
        "decoder_layers": 3,
        "encoder_normalize_before": True,
        "share_all_embeddings": True,
        "dropout": 0.2,
        "activation_fn": "gelu",
        "no_scale_embedding": True,
        "encoder_learned_pos": True,
    }
    model = random_model(1, WORDS, **shape)
    path = str(save_base(model, tmp_path / "v.pt", **shape))
    given = {"arch": "nar_drafter", "encoder_from": path, "max_source_positions": 1024}
    cfg: Any = {
        "flat": Namespace(**given, decoder_layers=1),
        "in a group": OmegaConf.create({**given, "decoder": {"layers": 1}}),
        "without groups": OmegaConf.create({**given, "decoder_layers": 1}),
    }[written]
    ARCH_CONFIG_REGISTRY["nar_drafter"](cfg)
    cfg = NarDrafterConfig.from_namespace(cfg)
    expected = NarDrafterConfig.from_namespace(read_checkpoint(path)["cfg"]["model"])
    expected.decoder.layers = 1
    assert architecture(cfg) == architecture(expected)
    assert (cfg.encoder_from, cfg.decoder.output_dim) == (path, 16)
    assert (cfg.dropout, cfg.max_source_positions) == (0.1, 64)


@pytest.mark.parametrize(
    "changes, option",
    [
        ({"adaptive_softmax_cutoff": "5,10"}, "--adaptive-softmax-cutoff"),
        ({"block_size": 0}, "--block-size"),
        (
            {"mask_source_copy": True, "no_token_positional_embeddings": True},
            "--mask-source-copy",
        ),
    ],
)
def test_options_that_the_decoder_cannot_honour(
    changes: dict[str, Any], option: str
) -> None:
    with refused_with(option):
        drafter("causal, post-norm sinusoidal", **changes)


def test_dictionaries_that_the_verifiers_encoder_does_not_share_are_refused_in_a_line(
    tmp_path: Path,
) -> None:
    model = random_model(1, WORDS, share_all_embeddings=True)
    path = str(save_base(model, tmp_path / "v.pt"))
    cfg = arguments("nar_drafter", encoder_from=path, share_all_embeddings=True)
    refused = r"--encoder-from .*v.pt: --share-all-embeddings requires a joined dict"
    with refused_with(refused):
        NarDrafterModel.build_model(cfg, task_of(WORDS, dictionary(7)))


def test_prefix_lengths_are_uniform_on_0_to_t_and_spread_within_a_sentence() -> None:
    torch.manual_seed(1)
    # 5 tokens with EOS, so 0 to 4
    drawn = random_prefix_lengths(torch.full((20000,), 5), 3)
    for block in range(3):
        shares = drawn[:, block].bincount(minlength=5) / len(drawn)
        assert (shares - 0.2).abs().max() < 0.015
    lengths = torch.randint(4, 30, (500,))
    drawn = random_prefix_lengths(lengths, 4)
    assert bool((drawn < lengths[:, None]).all())
    # all different, as there is room
    ordered = drawn.sort(dim=1).values
    assert bool((ordered.diff(dim=1) > 0).all())
    one_token, two_tokens = random_prefix_lengths(torch.tensor([1, 2]), 4).tolist()
    assert one_token == [0, 0, 0, 0]
    assert sorted(two_tokens) == [0, 0, 1, 1]


def test_prefix_lengths_of_validation_depend_on_the_sentence_alone() -> None:
    ids = torch.arange(1000)
    lengths = ids % 40 + 1
    all_at_once = fixed_prefix_lengths(ids, lengths, 4)
    some = torch.tensor([7, 998, 3])
    of_some = fixed_prefix_lengths(some, lengths[some], 4)
    assert torch.equal(of_some, all_at_once[some])
    of_eight_tokens = fixed_prefix_lengths(ids, torch.full((1000,), 8), 1)
    counts = of_eight_tokens.flatten().bincount(minlength=8)
    assert (counts / 1000 - 1 / 8).abs().max() < 0.01
