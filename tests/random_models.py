"""Small random fairseq models of every supported shape, and stock fairseq's answer for them."""

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel, lightconv
from fairseq.models.fconv import FConvModel
from fairseq.models.fconv import base_architecture as fconv_defaults
from fairseq.models.lstm import LSTMModel
from fairseq.models.lstm import base_architecture as lstm_defaults
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.modules import LearnedPositionalEmbedding
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


def dictionary(words: int, offset: int = 0) -> Dictionary:
    """w0 w1 ... behind fairseq's four special symbols."""
    symbols = Dictionary()
    for number in range(words):
        symbols.add_symbol(f"w{number + offset}")
    return symbols


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
) -> lightconv.LightConvModel:
    """As `random_model`, with convolutions in place of self-attention."""
    torch.manual_seed(seed)
    args = Namespace(
        encoder_embed_dim=16, encoder_ffn_embed_dim=32, encoder_layers=2, encoder_attention_heads=2,
        decoder_embed_dim=16, decoder_ffn_embed_dim=32, decoder_layers=2, decoder_attention_heads=2,
        encoder_kernel_size_list=[3, 5], decoder_kernel_size_list=[3, 5], weight_softmax=True, input_dropout=0.0,
        max_source_positions=64, max_target_positions=64, dropout=0.0,
    )  # fmt: skip
    vars(args).update(shape)
    task = SimpleNamespace(source_dictionary=src_dict, target_dictionary=tgt_dict)
    model = lightconv.LightConvModel.build_model(args, task)
    draw_weights(model)
    let_end(model.eval(), tgt_dict, eos_share)
    return model


def random_older_model(kind: str, seed: int, words: Dictionary) -> FairseqEncoderDecoderModel:
    """fairseq's own `fconv` or `lstm`, which know no layers or no positions, with random weights."""
    torch.manual_seed(seed)
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    args = Namespace(
        encoder_embed_dim=16, decoder_embed_dim=16, decoder_out_embed_dim=16, dropout=0.0, max_source_positions=64,
        max_target_positions=64, criterion="cross_entropy",
    )  # fmt: skip
    if kind == "fconv":
        args.encoder_layers = args.decoder_layers = "[(16, 3)] * 2"
        fconv_defaults(args)
        return FConvModel.build_model(args, task).eval()
    lstm_defaults(args)
    return LSTMModel.build_model(args, task).eval()


def random_model(
    seed: int, src_dict: Dictionary, tgt_dict: Dictionary, eos_share: float = 0.0, **shape: Any
) -> TransformerModel:
    """A model whose scores differ clearly from token to token, so that near-ties are rare.

    Args:
        seed: of the weights.
        src_dict: source dictionary.
        tgt_dict: target dictionary.
        eos_share: the share of positions, roughly, at which EOS is the best token; 0 leaves that to chance: hardly any.
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
    draw_weights(model)
    let_end(model.eval(), tgt_dict, eos_share)
    return model


@torch.no_grad()
def draw_weights(model: FairseqEncoderDecoderModel) -> None:
    """Weights of such sizes that tokens depend on what was read: others repeat one token for ever."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 2.0 / parameter.size(-1) ** 0.5)
        else:
            parameter.add_(0.2 * torch.randn_like(parameter))
        if name.startswith("decoder") and ("encoder_attn.v_proj" in name or "encoder_attn.out_proj" in name):
            parameter.mul_(0.3)
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
            module.weight.normal_(0, 1.0 if isinstance(module, LearnedPositionalEmbedding) else 0.2)
            module.weight[module.padding_idx] = 0


@torch.no_grad()
def let_end(model: FairseqEncoderDecoderModel, tgt_dict: Dictionary, share: float) -> None:
    """Turn the EOS row of the output projection towards the mean decoder state until EOS wins often enough."""
    if share == 0:
        return
    decoder = model.decoder
    projection = decoder.output_projection or decoder.adaptive_softmax.head
    read = torch.randint(tgt_dict.nspecial, len(tgt_dict), (8, 24))
    read[:, 0] = tgt_dict.eos()
    encoded = model.encoder(torch.randint(4, 9, (8, 10)), torch.full((8,), 10))
    states: list[torch.Tensor] = []
    hook = projection.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0].flatten(0, -2)))
    model.get_normalized_probs(decoder(read, encoder_out=encoded), log_probs=True)
    hook.remove()
    mean = states[0].mean(dim=0)
    weight = projection.weight
    weight -= torch.outer(weight @ mean, mean) / mean.dot(mean)  # what all states share favours no token
    log_probs = model.get_normalized_probs(decoder(read, encoder_out=encoded), log_probs=True)
    to_best = log_probs.max(dim=-1).values - log_probs[..., tgt_dict.eos()]
    weight[tgt_dict.eos()] += mean / mean.dot(mean) * to_best.quantile(share)


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
