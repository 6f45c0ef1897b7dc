"""Small random fairseq models of every supported shape, and stock fairseq's answer for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.models.lightconv import LightConvModel
from fairseq.models.transformer import TransformerModel
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_aggdec.lab.lossless.fuzzing.random_models import dictionary, draw_weights, random_network

__all__ = ["dictionary", "draw_weights"]

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
    "adaptive softmax, learned positions": {
        "adaptive_softmax_cutoff": "8,12",
        "adaptive_softmax_dropout": 0.0,
        "decoder_learned_pos": True,
    },
    "cross-self-attention": {"cross_self_attention": True, "no_cross_attention": True},
}


LIGHTCONV_SHAPES: dict[str, dict[str, Any]] = {
    "lightweight convolutions": {"encoder_conv_type": "lightweight", "decoder_conv_type": "lightweight"},
    "dynamic convolutions": {"encoder_conv_type": "dynamic", "decoder_conv_type": "dynamic"},
}
ALL_SHAPES = [*SHAPES, *FALLBACK_SHAPES, *LIGHTCONV_SHAPES]
ENGINE_SHAPES = list(SHAPES)


def model_of_shape(
    name: str, seed: int, src_dict: Dictionary, tgt_dict: Dictionary, eos_share: float = 0.0, **changes: Any
) -> FairseqEncoderDecoderModel:
    """A random model of a named shape, with architecture options changed as given."""
    if name in LIGHTCONV_SHAPES:
        return random_lightconv(seed, src_dict, tgt_dict, eos_share, **LIGHTCONV_SHAPES[name], **changes)
    shape = SHAPES[name] if name in SHAPES else FALLBACK_SHAPES[name]
    return random_model(seed, src_dict, tgt_dict, eos_share, **{**shape, **changes})


def random_lightconv(
    seed: int, src_dict: Dictionary, tgt_dict: Dictionary, eos_share: float = 0.0, **shape: Any
) -> LightConvModel:
    """As `random_model`, with convolutions in place of self-attention."""
    return random_network("lightconv", seed, src_dict, tgt_dict, eos_share, **shape)


def random_older_model(kind: str, seed: int, words: Dictionary) -> FairseqEncoderDecoderModel:
    """fairseq's own `fconv` or `lstm`, which know no layers or no positions, with random weights."""
    return random_network(kind, seed, words, words)


def random_model(
    seed: int, src_dict: Dictionary, tgt_dict: Dictionary, eos_share: float = 0.0, **shape: Any
) -> TransformerModel:
    """A Transformer with fairseq's architecture options; see `random_network`."""
    return random_network("transformer", seed, src_dict, tgt_dict, eos_share, **shape)


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
    models: list[FairseqEncoderDecoderModel], tgt_dict: Dictionary, sample: dict[str, Any], **options: Any
) -> list[dict[str, Any]]:
    """The oracle: fairseq's own generator with a beam of one."""
    prefix = options.pop("prefix_tokens", None)
    stock = SequenceGenerator(models, tgt_dict, beam_size=1, **options)
    return [hypotheses[0] for hypotheses in stock.generate(models, sample, prefix_tokens=prefix)]


@contextmanager
def mended_ngram_blocker() -> Iterator[None]:
    """fairseq's own blocker is shown the output without the padding behind it, in which it looks for n-grams, too."""
    broken = NGramRepeatBlock.forward

    def blocks(self: Any, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
        return broken(self, tokens[:, : step + 1], lprobs, bsz, beam_size, step)

    with mock.patch.object(NGramRepeatBlock, "forward", blocks):
        yield
