"""The layers of a decoder and of an encoder by `kernels`, in half precision."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor, nn

from fairseq_aggdec.engine.cuda import kernels
from fairseq_aggdec.engine.cuda.launching import launch_options
from fairseq_aggdec.engine.native.products import ACTIVATIONS
from fairseq_aggdec.engine.weights import fused_weights
from fairseq_aggdec.models.transformer_parts import layers_of

_ROWS = 16  # tokens in a tile of every product and of attention
_FEW_ROWS = 8  # of which no more are computed where no more are there
_AT_ONCE = 32  # inputs that a warp multiplies at once
_TILES = (64, 32, 16, 8)  # outputs of a program
_PROGRAMS = 64  # of a product, at least
_MOST_WEIGHTS = 2**16  # of a program; with more, its registers spill
_MOST_INPUTS = 1024  # of a norm, for the same reason
_TYPES = (torch.float16, torch.bfloat16)
_HEAD_DIMS = (16, 32, 64, 128)
_ADDITIONS = ("attn_ln", "c_attn", "ffn_layernorm", "w_resid")  # parts of fairseq's layer that few models have


class Norm(NamedTuple):
    """A layer's own normalisation, with a copy of its weights."""

    gain: Tensor
    shift: Tensor
    epsilon: float

    @classmethod
    def of(cls, module: Any, like: Tensor) -> "Norm":
        """`module`: a `LayerNorm` over rows of the size of `like`."""
        if tuple(module.normalized_shape) != like.shape:
            raise ValueError(f"a norm of {tuple(module.normalized_shape)} numbers, in layers of {like.numel()}")
        gain = torch.ones_like(like) if module.weight is None else module.weight.detach().clone()
        shift = torch.zeros_like(like) if module.bias is None else module.bias.detach().clone()
        return cls(gain, shift, module.eps)


class Product:
    """activation(norm(x) W^T + b) + residual, with a copy of the weights."""

    def __init__(
        self,
        shape: tuple[int, int],
        *projections: nn.Linear,
        norm: Norm | None = None,
        keeps: bool = False,
        activation: int = 0,
        part: int = 0,
    ) -> None:
        """
        Args:
            shape: outputs and inputs of the weights.
            projections: fused; of the same input.
            norm: of the input.
            keeps: the normalised input is what the next residual connection adds, not the input.
            activation: its number in `native.products`.
            part: see `division`.

        Raises:
            ValueError: the weights have another shape, as in a pruned model.
        """
        weight, bias = fused_weights(*projections)
        if weight.shape != shape:
            raise ValueError(f"a product of {tuple(weight.shape)} weights, where the layer's sizes ask for {shape}")
        self._outputs, self._inputs = shape
        self._tile, self._warps = division(self._outputs, self._inputs, part)
        self._keeps, self._activation = keeps and norm is not None, activation
        weights = packed(weight, self._tile, self._warps)
        self._factors = (*(norm or (None, None, 0.0)), weights, None if bias is None else bias.clone())
        self._device = weight.device

    def __call__(self, x: Tensor, y: Tensor, normed: Tensor | None = None, residual: Tensor | None = None) -> Tensor:
        """Write the result to y, ... x I -> ... x O; all are contiguous.

        `normed`: of the shape of x, may be overwritten; `residual`: of the shape of y, may be y. Returns what the
        residual connection around this product adds: x or norm(x).
        """
        kept, rows = normed if self._keeps else None, x.numel() // self._inputs
        sizes = (rows, self._inputs, self._outputs, self._tile, self._warps, self._activation)
        kernels.product[self._grid(rows)](x, self._factors, kept, residual, y, *sizes, **self._options(rows))
        return x if kept is None else kept

    def project(self, x: Tensor, normed: Tensor, query: Tensor, memory: Tensor, places: "_Places") -> Tensor:
        """Write queries to `query`, keys and values to a layer's memory, B x H x L x 2D/H. Returns as `__call__`."""
        kept, (batch, width, dim) = normed if self._keeps else None, x.shape
        kernels.projections[self._grid(batch * width)](
            *(x, self._factors, kept, query, memory, places.starts, places.paths),
            *(batch * width, width, places.longest(), memory.size(2), *_steps(memory, x)),
            *(dim, memory.size(3) // 2, self._tile, self._warps),
            **self._options(batch * width),
        )
        return x if kept is None else kept

    def _grid(self, rows: int) -> tuple[int, int]:
        return self._outputs // self._tile, _tiles(rows)

    def _options(self, rows: int) -> dict[str, Any]:
        some = _FEW_ROWS if rows <= _FEW_ROWS else _ROWS
        return {"some": some, "num_warps": self._warps, **launch_options(self._device)}


def division(outputs: int, inputs: int, part: int = 0) -> tuple[int, int]:
    """The number of outputs of one program of a product, which divides `part` or else all outputs, and its warps.

    Both are the fastest of those tried on an H100 with base and big, 8 and 32 rows, weights not in its caches.
    """
    fitting = [tile for tile in _TILES if (part or outputs) % tile == 0 and tile * inputs <= _MOST_WEIGHTS]
    tile = next((tile for tile in fitting if tile * _PROGRAMS <= outputs), fitting[-1])
    return tile, 16 if inputs > 2048 else 4 if inputs <= 512 < outputs else 8


def packed(weight: Tensor, tile: int, warps: int) -> Tensor:
    """Weights, O x I, in the order in which the kernels read them.

    Each program reads `tile` outputs in one piece: 32 inputs for each of its warps, then the next 32. Inputs are padded
    with zeros.
    """
    outputs, inputs = weight.shape
    piece = warps * _AT_ONCE
    whole = F.pad(weight, (0, -inputs % piece))
    parts = whole.view(outputs // tile, tile // 8, 8, -1, warps, _AT_ONCE)
    return parts.permute(0, 3, 1, 4, 2, 5).contiguous()


class _Layer:
    """The products of a layer, each with the norm in front of it."""

    def __init__(self, layer: Any, before: Norm | None) -> None:
        """`before`: in post-norm models the norm of the layer's input; None: it needs none."""
        own, cross = layer.self_attn, getattr(layer, "encoder_attn", None)
        dim, inner = own.embed_dim, layer.fc1.out_features
        modules = [layer.self_attn_layer_norm, layer.final_layer_norm]
        if cross is not None:
            modules.insert(1, layer.encoder_attn_layer_norm)
        norms: list[Norm | None] = [Norm.of(module, layer.fc1.weight[0]) for module in modules]
        self.after: Norm | None = None
        """of the layer's output, which is not yet normalised"""
        keeps = not layer.normalize_before
        if keeps:  # what a part leaves is normalised where the next one reads it
            *norms, self.after = [before, *norms]
        self.qkv = Product(
            (3 * dim, dim), own.q_proj, own.k_proj, own.v_proj, norm=norms[0], keeps=keeps, part=own.head_dim
        )
        self.out = Product((dim, dim), own.out_proj)
        if cross is not None:
            self.cross_q = Product((dim, dim), cross.q_proj, norm=norms[1], keeps=keeps)
            self.cross_out = Product((dim, dim), cross.out_proj)
        activation = ACTIVATIONS[layer.activation_fn]
        self.fc1 = Product((inner, dim), layer.fc1, norm=norms[-1], keeps=keeps, activation=activation)
        self.fc2 = Product((dim, inner), layer.fc2)


class _Places(NamedTuple):
    """Where a block's keys and values are written, and what its tokens attend to: see `kernels`."""

    starts: Tensor | None
    ends: Tensor | None
    paths: Tensor | None
    hidden: Tensor | None

    def longest(self) -> int:
        return 0 if self.paths is None else self.paths.size(2)


class _Stack:
    """A model's layers and its last norm, without dropout."""

    def __init__(self, model: TransformerEncoderBase | TransformerDecoderBase) -> None:
        """Copy the present weights; raises `ValueError` where the kernels do not support the model."""
        layers = layers_of(model)
        for layer in layers:
            _check(layer, layers[0])
        self._dim, self._head_dim = layers[0].self_attn.embed_dim, layers[0].self_attn.head_dim
        self._inner = layers[0].fc1.out_features
        self._layers: list[_Layer] = []
        after = None
        for layer in layers:
            self._layers.append(_Layer(layer, after))
            after = self._layers[-1].after
        last = None if model.layer_norm is None else Norm.of(model.layer_norm, layers[0].fc1.weight[0])
        self._last = [norm for norm in (after, last) if norm is not None]
        device = layers[0].fc1.weight.device
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # kernels load weights before they wait for what ran before them

    def _run(
        self,
        x: Tensor,
        memories: Sequence[Tensor],
        own: _Places,
        crosses: Sequence[Tensor | None],
        padding: Tensor | None,
    ) -> Tensor:
        """Run the layers on x, B x W x D; `memories`, `crosses`: keys and values of each layer, B x H x L x 2D/H."""
        if x.size(-1) != self._dim:
            raise RuntimeError(f"{x.size(-1)} features of a token for layers of {self._dim}")
        x = x.contiguous()
        y, query, found, normed = (torch.empty_like(x) for _ in range(4))
        inner = x.new_empty(*x.shape[:-1], self._inner)
        others = _Places(None, None, None, _bytes(padding))
        for layer, memory, cross in zip(self._layers, memories, crosses, strict=True):
            residual = layer.qkv.project(x, normed, query, memory, own)
            self._attend(query, memory, own, found)
            layer.out(found, y, residual=residual)
            if cross is not None:
                residual = layer.cross_q(y, query, normed)
                self._attend(query, cross, others, found)
                layer.cross_out(found, y, residual=residual)
            residual = layer.fc1(y, inner, normed)
            layer.fc2(inner, y, residual=residual)
            x = y
        for norm in self._last:
            _write_norm(x, None, norm, y)
        return y

    def _attend(self, query: Tensor, memory: Tensor, places: _Places, y: Tensor) -> None:
        """Write to y, B x W x D, what queries find in a layer's memory."""
        batch, width, dim = query.shape
        hidden_step = 0 if places.hidden is None else places.hidden.stride(0)
        per_token = places.ends is not None and places.ends.dim() == 2
        kernels.attention[batch * dim // self._head_dim, width if places.paths is not None else _tiles(width)](
            *(query, memory, places.ends, places.paths, places.hidden, y),
            *(width, places.longest(), memory.size(2), *_steps(memory, query), hidden_step),
            *(self._head_dim**-0.5, dim, self._head_dim, per_token),
            num_warps=4,
            num_stages=1,  # the loop mostly runs once: more stages would bring keys and values through shared memory
            **launch_options(query.device),
        )


def _write_norm(x: Tensor, residual: Tensor | None, norm: Norm, y: Tensor) -> None:
    """Write norm(x + residual) to y, ... x D, which may be x."""
    dim = x.size(-1)
    rows, padded = x.numel() // dim, 1 << (dim - 1).bit_length()
    kernels.norm[(rows,)](*(x, residual, *norm, y, dim, padded), num_warps=4, **launch_options(x.device))


class TritonDecoderLayers(_Stack):
    """The layers and the last norm of a `TransformerDecoderBase`, as `plain.layers.DecoderLayers`.

    Nothing here waits for the device, and all of it can be captured in a graph.
    """

    def __init__(self, decoder: TransformerDecoderBase) -> None:
        super().__init__(decoder)
        if any(getattr(layer, "encoder_attn", None) is None for layer in layers_of(decoder)):
            raise ValueError("layers without attention to the encoder")

    def block(
        self,
        x: Tensor,
        memory: Tensor,
        starts: Tensor,
        cross: Tensor,
        padding: Tensor | None,
        *,
        reach: Tensor | None = None,
        paths: Tensor | None = None,
    ) -> Tensor:
        """Run the layers on a block, or on trees, B x W x D -> B x W x D.

        Tokens that would be written beyond the capacity of `memory` are not, and their results have no meaning.

        Args:
            x: the input of the first layer.
            memory: layers x B x H x C x 2D/H, cached keys and values, to which the block's are added; a view.
            starts: B, the position of each row's first token; with `paths` B x W, the position of each token.
            cross: the sources' keys and values, layers x B x H x S x 2D/H; a view.
            padding: booleans, B x S, the hidden positions of the sources; None: nothing is hidden.
            reach: B x W, the last position that each token attends to; None: its own.
            paths: B x W x L, the slots of `memory` that a token attends to, position by position; its own slot, to
                which it is written, from its position on. None: slots are positions.
        """
        ends = starts if reach is None else reach.contiguous()
        own = _Places(starts.contiguous(), ends.contiguous(), None if paths is None else paths.contiguous(), None)
        return self._run(x, memory.unbind(0), own, cross.unbind(0), padding)


class TritonEncoderLayers(_Stack):
    """The layers and the last norm of a `TransformerEncoderBase`."""

    def __call__(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """Run the layers, B x S x C -> B x S x C; `padding`: booleans, B x S, the hidden positions."""
        batch, length, dim = x.shape
        memory = x.new_empty(batch, dim // self._head_dim, length, 2 * self._head_dim)
        own = _Places(None, None, None, _bytes(padding))
        layers = len(self._layers)
        return self._run(x, [memory] * layers, own, [None] * layers, None)


def _check(layer: Any, first: Any) -> None:
    """Raise `ValueError` if the kernels do not support a layer after a `first` one."""
    own, inner, kind = layer.self_attn, layer.fc1.out_features, layer.fc1.weight.dtype
    if _sizes(layer) != _sizes(first):
        raise ValueError("layers of several sizes")
    for name in _ADDITIONS:
        if getattr(layer, name, None) is not None:
            raise ValueError(f"layers with {name}")
    if kind not in _TYPES:
        raise ValueError(f"weights in {kind}, not in half precision")
    if layer.activation_fn is None or layer.activation_fn not in ACTIVATIONS:
        raise ValueError(f"the activation {getattr(layer.activation_fn, '__name__', layer.activation_fn)}")
    if own.head_dim not in _HEAD_DIMS:
        raise ValueError(f"heads of {own.head_dim} numbers, not of {', '.join(map(str, _HEAD_DIMS))}")
    if own.embed_dim % _ROWS != 0 or inner % _ROWS != 0:
        raise ValueError(f"layers of {own.embed_dim} numbers and {inner} inside, not multiples of {_ROWS}")
    if own.embed_dim > _MOST_INPUTS:
        raise ValueError(f"layers of {own.embed_dim} numbers, above {_MOST_INPUTS}, for which registers do not suffice")


def _sizes(layer: Any) -> tuple[int, ...]:
    return layer.self_attn.embed_dim, layer.self_attn.head_dim, layer.fc1.out_features, layer.normalize_before


def _tiles(rows: int) -> int:
    return -(-rows // _ROWS)


def _bytes(padding: Tensor | None) -> Tensor | None:
    if padding is None:
        return None
    return (padding if padding.stride(1) == 1 else padding.contiguous()).view(torch.uint8)


def _steps(memory: Tensor, x: Tensor) -> tuple[int, ...]:
    """The strides of keys and values, B x H x L x 2D/H, in entries; checks the shape, since x is B x W x D."""
    size = memory.size(3)
    if memory.size(0) < x.size(0) or memory.size(1) * size != 2 * x.size(2) or memory.dtype != x.dtype:
        raise RuntimeError(f"{memory.dtype} keys and values of {tuple(memory.shape)} for {x.dtype} {tuple(x.shape)}")
    if memory.stride(3) != 1 or any(stride % size != 0 for stride in memory.stride()[:3]):
        raise RuntimeError(f"keys and values with strides of {memory.stride()}, not in whole entries")
    return tuple(stride // size for stride in memory.stride()[:3])
