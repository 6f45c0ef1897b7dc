"""T5 (Raffel et al. 2020) as a model of fairseq, for imported checkpoints: T5, T5 1.1, Flan-T5, mT5, ByT5, MADLAD-400.

No layer has a bias, norms neither subtract a mean nor add anything, scores of attention are not scaled, and tokens have
no positions: in each stack one table adds a number to the scores of all its self-attention, by head and distance. It
is here to decode: there is no dropout.
"""

import math
from argparse import Namespace
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models import (
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
    register_model_architecture,
)
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_aggdec.models.transformer_parts import additive_mask


def gelu_tanh(x: Tensor) -> Tensor:
    """The GELU of T5 1.1, by tanh in place of the error function."""
    return F.gelu(x, approximate="tanh")


State = dict[Any, Any]
"""fairseq's incremental state: each layer of attention keeps its keys and values there, batch x heads x tokens x dim"""


def buckets(distances: Tensor, count: int, longest: int, both_ways: bool) -> Tensor:
    """The row of the table for each distance, of the same shape.

    Half of the rows are for single distances, the others for ranges that grow up to `longest`; the last has the rest.

    Args:
        distances: of a key from its query, in tokens; below 0: the key is earlier.
        count: of the table's rows.
        longest: the distance from which on all have the last row.
        both_ways: whether keys after the query have the table's second half; else they have row 0.
    """
    if both_ways:
        count = count // 2
        apart = distances.abs()
    else:
        apart = (-distances).clamp(min=0)
    single = count // 2
    # in single precision, as T5 was trained: its rounding decides at a range's end
    growth = torch.log(apart.float() / single) / math.log(longest / single)
    ranges = (single + (growth * (count - single)).long()).clamp(max=count - 1)
    rows = torch.where(apart < single, apart, ranges)
    if both_ways:
        rows = rows + count * (distances > 0)
    return rows


class DistanceBias(nn.Module):
    """The table of a stack: what is added to a score, by head and distance."""

    def __init__(self, args: Namespace, is_causal: bool) -> None:
        """`is_causal`: no query reads a later key."""
        super().__init__()
        heads = args.encoder_attention_heads
        self.table = nn.Embedding(args.distance_buckets, heads)
        self.longest = args.longest_distance
        self.is_causal = is_causal

    def of(self, distances: Tensor) -> Tensor:
        """Of each distance, see `buckets`: heads x the shape of `distances`."""
        rows = buckets(
            distances, self.table.num_embeddings, self.longest, not self.is_causal
        )
        return self.table(rows).movedim(-1, 0)

    def forward(self, queries: int, keys: int) -> Tensor:
        """1 x heads x queries x keys, where the queries are at the last places of the keys."""
        places = torch.arange(keys, device=self.table.weight.device)
        distances = places - places[keys - queries :, None]
        bias = self.of(distances)
        if self.is_causal:
            bias = bias.masked_fill(distances > 0, -math.inf)
        return bias[None]


class Attention(nn.Module):
    """Attention whose scores are not scaled. Its heads together may be wider or narrower than the model."""

    scaling = 1.0

    def __init__(self, args: Namespace, reads_encoder: bool) -> None:
        """`reads_encoder`: keys and values are those of the encoder's output, computed once."""
        super().__init__()
        self.num_heads = args.encoder_attention_heads
        self.head_dim = args.head_dim
        self.reads_encoder = reads_encoder
        dim = self.kdim = args.encoder_embed_dim
        inner = self.num_heads * self.head_dim
        self.q_proj = nn.Linear(dim, inner, bias=False)
        self.k_proj = nn.Linear(dim, inner, bias=False)
        self.v_proj = nn.Linear(dim, inner, bias=False)
        self.out_proj = nn.Linear(inner, dim, bias=False)

    def forward(
        self, x: Tensor, memory: Tensor, bias: Tensor, state: State | None
    ) -> Tensor:
        """What each query has read.

        Args:
            x: the queries, batch x queries x dim.
            memory: what keys and values are made of, batch x tokens x dim.
            bias: added to scores, of a shape like batch x heads x queries x keys.
            state: earlier keys, which come before those of `memory`; those of the encoder replace them.
        """
        saved = None if state is None else state.get(self)
        if saved is not None and self.reads_encoder:
            keys, values = saved
        else:
            keys = self._by_head(self.k_proj(memory))
            values = self._by_head(self.v_proj(memory))
            if saved is not None:
                keys = torch.cat([saved[0], keys], dim=2)
                values = torch.cat([saved[1], values], dim=2)
        if state is not None:
            state[self] = keys, values
        queries = self._by_head(self.q_proj(x))
        scores = queries @ keys.transpose(2, 3) + bias
        # in half precision the sum of many probabilities would be rough
        weights = scores.float().softmax(-1).type_as(scores)
        read = weights @ values
        return self.out_proj(read.transpose(1, 2).flatten(2))

    def reorder_incremental_state(self, state: State, order: Tensor) -> None:
        """Keep the rows `order` of the batch, in this order."""
        if self in state:
            state[self] = [saved.index_select(0, order) for saved in state[self]]

    def _by_head(self, x: Tensor) -> Tensor:
        """batch x tokens x inner as batch x heads x tokens x head dim."""
        return x.unflatten(2, (self.num_heads, -1)).transpose(1, 2)


class Layer(nn.Module):
    """A layer of either stack; each part reads what a norm of its own has scaled, and adds to it."""

    normalize_before = True

    def __init__(self, args: Namespace, reads_encoder: bool) -> None:
        super().__init__()
        dim = args.encoder_embed_dim
        inner = args.encoder_ffn_embed_dim
        self.self_attn_layer_norm = nn.RMSNorm(dim, args.norm_eps)
        self.self_attn = Attention(args, reads_encoder=False)
        if reads_encoder:
            self.encoder_attn_layer_norm = nn.RMSNorm(dim, args.norm_eps)
            self.encoder_attn = Attention(args, reads_encoder=True)
        self.final_layer_norm = nn.RMSNorm(dim, args.norm_eps)
        self.fc1 = nn.Linear(dim, inner, bias=False)
        self.gate = nn.Linear(dim, inner, bias=False) if args.is_gated else None
        self.activation_fn = gelu_tanh if args.is_gated else F.relu
        self.fc2 = nn.Linear(inner, dim, bias=False)

    def forward(
        self,
        x: Tensor,
        bias: Tensor,
        encoder_out: Tensor | None = None,
        encoder_bias: Any = None,
        state: State | None = None,
    ) -> Tensor:
        """The states after the layer, batch x tokens x dim.

        Args:
            x: the states before it.
            bias, encoder_bias: added to scores of self-attention, and of attention to the encoder.
            encoder_out: batch x source tokens x dim; None: it reads no encoder.
            state: fairseq's, of the tokens before `x`.
        """
        read = self.self_attn_layer_norm(x)
        x = x + self.self_attn(read, read, bias, state)
        if encoder_out is not None:
            read = self.encoder_attn_layer_norm(x)
            x = x + self.encoder_attn(read, encoder_out, encoder_bias, state)
        read = self.final_layer_norm(x)
        inner = self.activation_fn(self.fc1(read))
        if self.gate is not None:
            inner = inner * self.gate(read)
        return x + self.fc2(inner)


class _WithoutPositions:
    """Between tokens and layers, and behind the layers, T5 has none of the parts of fairseq's Transformer."""

    embed_scale = 1.0
    embed_positions = None
    layernorm_embedding = None
    project_in_dim = None
    project_out_dim = None
    adaptive_softmax = None
    cross_self_attention = False


class T5Encoder(_WithoutPositions, FairseqEncoder):
    """The encoder, whose output is of the same form as that of fairseq's Transformer."""

    def __init__(
        self, args: Namespace, dictionary: Any, embed_tokens: nn.Module
    ) -> None:
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.embed_tokens = embed_tokens
        self.distance_bias = DistanceBias(args, is_causal=False)
        self.layers = nn.ModuleList(
            Layer(args, reads_encoder=False) for _ in range(args.encoder_layers)
        )
        self.layer_norm = nn.RMSNorm(args.encoder_embed_dim, args.norm_eps)
        self._longest = args.max_source_positions

    def forward(
        self, src_tokens: Tensor, src_lengths: Any = None, **unused: Any
    ) -> dict[str, Any]:
        """The states of a batch of sources, and which of them are padding.

        Args:
            src_tokens: batch x tokens.
            src_lengths: not read.
            unused: other options of fairseq's encoders.
        """
        padding = src_tokens.eq(self.dictionary.pad())
        x = self.embed_tokens(src_tokens)
        hidden = additive_mask(padding, x)[:, None, None]
        bias = self.distance_bias(x.size(1), x.size(1)) + hidden
        for layer in self.layers:
            x = layer(x, bias)
        return {
            "encoder_out": [self.layer_norm(x).transpose(0, 1)],
            "encoder_padding_mask": [padding],
            "encoder_embedding": [],
            "encoder_states": [],
            "src_tokens": [],
            "src_lengths": [],
        }

    def reorder_encoder_out(
        self, encoder_out: dict[str, Any], new_order: Tensor
    ) -> dict[str, Any]:
        """Keep the rows `new_order` of the batch, in this order."""
        x = encoder_out["encoder_out"][0].index_select(1, new_order)
        padding = encoder_out["encoder_padding_mask"][0].index_select(0, new_order)
        return encoder_out | {"encoder_out": [x], "encoder_padding_mask": [padding]}

    def max_positions(self) -> int:
        return self._longest


class T5Decoder(_WithoutPositions, FairseqIncrementalDecoder):
    """The decoder. Its outputs have a bias, which forbids symbols that a checkpoint does not have."""

    def __init__(
        self, args: Namespace, dictionary: Any, embed_tokens: nn.Module
    ) -> None:
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        dim = args.encoder_embed_dim
        self.embed_tokens = embed_tokens
        self.distance_bias = DistanceBias(args, is_causal=True)
        self.layers = nn.ModuleList(
            Layer(args, reads_encoder=True) for _ in range(args.decoder_layers)
        )
        self.layer_norm = nn.RMSNorm(dim, args.norm_eps)
        self.output_projection = nn.Linear(dim, len(dictionary))
        self.first_input = args.first_input
        """the symbol that is read in place of EOS"""
        self._longest = args.max_target_positions

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, Any],
        incremental_state: State | None = None,
        features_only: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """The logits after each token, batch x tokens x symbols, or the states that they are made of.

        Args:
            prev_output_tokens: batch x tokens; the first is EOS, which stands for the first input of T5.
            encoder_out: as of `T5Encoder`.
            incremental_state: fairseq's, of all tokens but the last, which then is the only one that is read.
            features_only: return the states, batch x tokens x dim.
            unused: other options of fairseq's decoders.
        """
        length = prev_output_tokens.size(1)
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
        is_first = prev_output_tokens.eq(self.dictionary.eos())
        x = self.embed_tokens(
            prev_output_tokens.masked_fill(is_first, self.first_input)
        )
        # what is added to scores
        bias = self.distance_bias(x.size(1), length)
        source = encoder_out["encoder_out"][0].transpose(0, 1)
        padding = encoder_out["encoder_padding_mask"][0]
        source_bias = additive_mask(padding, x)[:, None, None]
        for layer in self.layers:
            x = layer(x, bias, source, source_bias, incremental_state)
        x = self.layer_norm(x)
        if not features_only:
            x = self.output_projection(x)
        return x, {"attn": [None]}

    def max_positions(self) -> int:
        return self._longest


@register_model("hub_t5")
class T5Model(FairseqEncoderDecoderModel):
    """Encoder and decoder have one matrix of embeddings."""

    @classmethod
    def build_model(cls, args: Namespace, task: FairseqTask) -> "T5Model":
        """A model of these options, which `hub.t5` writes; source and target have one dictionary."""
        symbols = task.source_dictionary
        embeddings = nn.Embedding(len(symbols), args.encoder_embed_dim)
        decoder = T5Decoder(args, symbols, embeddings)
        if args.share_all_embeddings:
            decoder.output_projection.weight = embeddings.weight
        return cls(T5Encoder(args, symbols, embeddings), decoder)


@register_model_architecture("hub_t5", "hub_t5")
def hub_t5(args: Namespace) -> None:
    """Options of fairseq's Transformer for a drafter's decoder; an imported checkpoint names all that T5 needs."""
    dim = args.encoder_embed_dim
    # T5's own heads need not make up its width
    args.decoder_attention_heads = dim // math.gcd(dim, 64)
    args.encoder_normalize_before = args.decoder_normalize_before = True
    args.no_scale_embedding = True
    base_architecture(args)
