"""Small random fairseq models of every supported shape, and stock fairseq's answer for them."""

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.sequence_generator import SequenceGenerator

SHAPES: dict[str, dict[str, Any]] = {
    "post-norm sinusoidal": {},
    "pre-norm sinusoidal": {"encoder_normalize_before": True, "decoder_normalize_before": True},
    "post-norm learned": {"encoder_learned_pos": True, "decoder_learned_pos": True},
    "pre-norm learned, layernorm_embedding": {
        "encoder_normalize_before": True,
        "decoder_normalize_before": True,
        "encoder_learned_pos": True,
        "decoder_learned_pos": True,
        "layernorm_embedding": True,
    },
    "shared output projection": {"share_decoder_input_output_embed": True},
    "narrow embeddings": {"decoder_embed_dim": 24, "decoder_output_dim": 16, "decoder_input_dim": 16},
    "no positions": {"no_token_positional_embeddings": True},
    "gelu, three layers": {"activation_fn": "gelu", "decoder_layers": 3},
}
FALLBACK_SHAPES: dict[str, dict[str, Any]] = {
    "adaptive softmax": {"adaptive_softmax_cutoff": "8,12", "adaptive_softmax_dropout": 0.0},
    "cross-self-attention": {"cross_self_attention": True, "no_cross_attention": True},
}


def dictionary(words: int, offset: int = 0) -> Dictionary:
    """w0 w1 ... behind fairseq's four special symbols."""
    symbols = Dictionary()
    for number in range(words):
        symbols.add_symbol(f"w{number + offset}")
    return symbols


def random_model(
    seed: int, src_dict: Dictionary, tgt_dict: Dictionary, eos_bias: float = 0.0, **shape: Any
) -> TransformerModel:
    """A model whose scores differ clearly from token to token, so that near-ties are rare.

    Args:
        seed: of the weights.
        src_dict: source dictionary.
        tgt_dict: target dictionary.
        eos_bias: how much of every decoder state points at EOS: positive for short outputs.
        shape: fairseq's architecture options.
    """
    torch.manual_seed(seed)
    args = Namespace(
        encoder_embed_dim=16, encoder_ffn_embed_dim=32, encoder_layers=2, encoder_attention_heads=2,
        decoder_embed_dim=16, decoder_ffn_embed_dim=32, decoder_layers=2, decoder_attention_heads=2,
        max_source_positions=64, max_target_positions=64, dropout=0.0,
    )  # fmt: skip
    vars(args).update(shape)
    base_architecture(args)
    model = TransformerModel.build_model(args, SimpleNamespace(source_dictionary=src_dict, target_dictionary=tgt_dict))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 2.0 / parameter.size(-1) ** 0.5)
            else:
                parameter.add_(0.2 * torch.randn_like(parameter))
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding):
                module.weight[module.padding_idx] = 0
        projection = getattr(model.decoder, "output_projection", None)
        if projection is not None:
            projection.weight[tgt_dict.eos()] *= 1.0 + eos_bias
    return model.eval()


def random_batch(seed: int, src_dict: Dictionary, lengths: list[int], left_pad: bool = True) -> dict[str, Any]:
    """Random sentences of the given lengths (EOS not counted), padded as fairseq pads them."""
    generator = torch.Generator().manual_seed(seed)
    width = max(lengths) + 1
    tokens = torch.full((len(lengths), width), src_dict.pad())
    for row, length in enumerate(lengths):
        words = torch.randint(src_dict.nspecial, len(src_dict), (length,), generator=generator)
        sentence = torch.cat([words, torch.tensor([src_dict.eos()])])
        begin = width - length - 1 if left_pad else 0
        tokens[row, begin : begin + length + 1] = sentence
    return {
        "id": torch.arange(len(lengths)),
        "net_input": {"src_tokens": tokens, "src_lengths": torch.tensor(lengths) + 1},
    }


def stock_beam_one(
    models: list[TransformerModel], tgt_dict: Dictionary, sample: dict[str, Any], **options: Any
) -> list[dict[str, Any]]:
    """The oracle: fairseq's own generator with a beam of one."""
    prefix = options.pop("prefix_tokens", None)
    stock = SequenceGenerator(models, tgt_dict, beam_size=1, **options)
    return [hypotheses[0] for hypotheses in stock.generate(models, sample, prefix_tokens=prefix)]
