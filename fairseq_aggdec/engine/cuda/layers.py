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
from fairseq_aggdec.engine.plain.layers import DistanceTables, distance_bias
from fairseq_aggdec.engine.weights import fused_weights, width_of
from fairseq_aggdec.models.transformer_parts import layers_of

_ROWS = 16  # tokens in a tile of every product and of attention
_FEW_ROWS = 8  # of which no more are computed where no more are there
_AT_ONCE = 32  # inputs that a warp multiplies at once
_BLOCK_SIZES = (64, 32, 16, 8)  # outputs of a program
_PROGRAMS = 64  # of a product, at least
_MOST_WEIGHTS = 2**16  # of a program; with more, its registers spill
_MOST_INPUTS = 1024  # of a norm, for the same reason
_HEAD_DIMS = (16, 32, 64, 128)


class Norm(NamedTuple):
    """A layer's normalisation, with a copy of its weights."""

    gain: Tensor
    shift: Tensor | None
    """None: of an RMS norm, which subtracts no mean"""
    epsilon: float

    @classmethod
    def of(cls, module: Any, like: Tensor) -> "Norm":
        """`module`: a `LayerNorm` or an `RMSNorm` over rows of the size and type of `like`."""
        gain = (
            torch.ones_like(like)
            if module.weight is None
            else module.weight.detach().clone()
        )
        shift = None
        if not isinstance(module, nn.RMSNorm):
            shift = (
                torch.zeros_like(like)
                if module.bias is None
                else module.bias.detach().clone()
            )
        return cls(gain, shift, module.eps)


class Product:
    """norm(x) W^T + b + a residual, or activation(norm(x) W^T + b) times a gate, with a copy of the weights."""

    def __init__(
        self,
        shape: tuple[int, int],
        *projections: nn.Linear,
        norm: Norm | None = None,
        residual_is_normed: bool = False,
        activation: int = 0,
        part: int = 0,
    ) -> None:
        """
        Args:
            shape: outputs and inputs of the weights.
            projections: fused; of the same input.
            norm: of the input.
            residual_is_normed: the next residual connection adds norm(x), not x, as in post-norm models.
            activation: its index in `native.products`.
            part: see `division`.

        Raises:
            ValueError: the weights have another shape, as in a pruned model.
        """
        weight, bias = fused_weights(*projections)
        if weight.shape != shape:
            raise ValueError(
                f"a product of {tuple(weight.shape)} weights, where the layer's sizes ask for {shape}"
            )
        self._outputs, self._inputs = shape
        self._block_size, self._warps = division(self._outputs, self._inputs, part)
        self._residual_is_normed = residual_is_normed and norm is not None
        self._activation = activation
        self._device = weight.device
        weights = packed(weight, self._block_size, self._warps)
        bias = None if bias is None else bias.clone()
        norm_parameters = norm or (None, None, 0.0)
        self._parameters = (*norm_parameters, weights, bias)

    def __call__(
        self,
        x: Tensor,
        y: Tensor,
        normed: Tensor | None = None,
        other: Tensor | None = None,
    ) -> Tensor:
        """Write the result to y, ... x I -> ... x O; all are contiguous.

        `normed`: of the shape of x, may be overwritten; `other`: the residual or the gate, of the shape of y, may be y.
        Returns what the residual connection around this product adds: x or norm(x).
        """
        sizes = (self._inputs, self._outputs)
        return self._launch(
            kernels.product, x, normed, other, y, *sizes, self._activation
        )

    def project(
        self,
        x: Tensor,
        normed: Tensor | None,
        query: Tensor,
        memory: Tensor,
        starts: Tensor | None,
        paths: Tensor | None,
    ) -> Tensor:
        """Write queries to `query`, keys and values to a layer's memory, B x H x L x 2D/H. Returns as `__call__`.

        `starts`, `paths`: see `kernels.projections`.
        """
        _, width, dim = x.shape
        query_dim = query.size(2)
        return self._launch(
            kernels.projections,
            *(x, normed, query, memory, starts, paths),
            *(width, _length(paths), memory.size(2)),
            *_steps(memory),
            *(dim, query_dim, memory.size(3) // 2),
        )

    def _launch(
        self, kernel: Any, x: Tensor, normed: Tensor | None, *arguments: Any
    ) -> Tensor:
        """Launch a kernel for the rows of x; return what the residual connection adds."""
        if not self._residual_is_normed:
            normed = None
        rows = x.numel() // self._inputs
        kernel[self._outputs // self._block_size, _tiles(rows)](
            *(x, self._parameters, normed, rows),
            *arguments,
            block_size=self._block_size,
            warps=self._warps,
            loaded_rows=_FEW_ROWS if rows <= _FEW_ROWS else _ROWS,
            num_warps=self._warps,
            **launch_options(self._device),
        )
        return x if normed is None else normed


def division(outputs: int, inputs: int, part: int = 0) -> tuple[int, int]:
    """How many outputs one program of a product, which divides `part` or else all outputs, and its warps.

    Both are the fastest of those tried on an H100 with base and big, 8 and 32 rows, weights not in its caches.
    """
    dividing = [size for size in _BLOCK_SIZES if (part or outputs) % size == 0]
    fitting = [size for size in dividing if size * inputs <= _MOST_WEIGHTS]
    block_size = next(
        (size for size in fitting if size * _PROGRAMS <= outputs), fitting[-1]
    )
    warps = 8
    if inputs > 2048:
        warps = 16
    elif inputs <= 512 < outputs:
        warps = 4
    return block_size, warps


def packed(weight: Tensor, block_size: int, warps: int) -> Tensor:
    """Weights, O x I, in the order in which the kernels read them.

    Each program reads `block_size` outputs in one piece: 32 inputs for each of its warps, then the next 32. Inputs are
    padded with zeros.
    """
    outputs, inputs = weight.shape
    piece = warps * _AT_ONCE
    whole = F.pad(weight, (0, -inputs % piece))
    parts = whole.view(outputs // block_size, block_size // 8, 8, -1, warps, _AT_ONCE)
    return parts.permute(0, 3, 1, 4, 2, 5).contiguous()


class _Layer:
    """The products of a layer, each with the norm in front of it."""

    def __init__(self, layer: Any, before: Norm | None) -> None:
        """`before`: in post-norm models the norm of the layer's input; None: it needs none."""
        attention = layer.self_attn
        cross = getattr(layer, "encoder_attn", None)
        dim = attention.q_proj.in_features
        width = width_of(attention)
        inner = layer.fc1.out_features

        # the norms in front of the parts; in post-norm models each part's output is normalised where it is read
        modules = [layer.self_attn_layer_norm, layer.final_layer_norm]
        if cross is not None:
            modules.insert(1, layer.encoder_attn_layer_norm)
        norms: list[Norm | None] = [
            Norm.of(module, layer.fc1.weight[0]) for module in modules
        ]
        self.after: Norm | None = None
        """of the layer's output, which is not yet normalised"""
        is_post_norm = not layer.normalize_before
        if is_post_norm:
            *norms, self.after = [before, *norms]

        # the products of self-attention, of cross-attention and of the feed-forward part
        self.qkv = Product(
            (3 * width, dim),
            *(attention.q_proj, attention.k_proj, attention.v_proj),
            norm=norms[0],
            residual_is_normed=is_post_norm,
            part=attention.head_dim,
        )
        self.out = Product((dim, width), attention.out_proj)
        if cross is not None:
            self.cross_q = Product(
                (width, dim),
                cross.q_proj,
                norm=norms[1],
                residual_is_normed=is_post_norm,
            )
            self.cross_out = Product((dim, width), cross.out_proj)
        gate = getattr(layer, "gate", None)
        self.gate: Product | None = None
        """what multiplies the output of `fc1`; None: nothing"""
        if gate is not None:
            self.gate = Product((inner, dim), gate, norm=norms[-1])
        self.fc1 = Product(
            (inner, dim),
            layer.fc1,
            norm=norms[-1],
            residual_is_normed=is_post_norm,
            activation=ACTIVATIONS[layer.activation_fn],
        )
        self.fc2 = Product((dim, inner), layer.fc2)


class _Stack:
    """A model's layers and its last norm, without dropout."""

    def __init__(self, model: TransformerEncoderBase | TransformerDecoderBase) -> None:
        """Copy the present weights; raises `ValueError` where the kernels do not support the model."""
        layers = layers_of(model)
        for layer in layers:
            _check(layer, layers[0])
        first = layers[0]
        attention = first.self_attn
        self._head_dim = attention.head_dim
        self._width = width_of(attention)
        self._scaling = attention.scaling
        self._bias = distance_bias(model)
        self._inner = first.fc1.out_features
        self._layers: list[_Layer] = []
        after = None
        for layer in layers:
            self._layers.append(_Layer(layer, after))
            after = self._layers[-1].after
        last = (
            None
            if model.layer_norm is None
            else Norm.of(model.layer_norm, first.fc1.weight[0])
        )
        self._last = [norm for norm in (after, last) if norm is not None]
        device = first.fc1.weight.device
        if device.type == "cuda":
            # kernels load weights before they wait for what ran before them
            torch.cuda.synchronize(device)

    def _run(
        self,
        x: Tensor,
        memories: Sequence[Tensor],
        crosses: Sequence[Tensor | None],
        padding: Tensor | None,
        starts: Tensor | None = None,
        ends: Tensor | None = None,
        paths: Tensor | None = None,
    ) -> Tensor:
        """Run the layers on x, B x W x D.

        Args:
            x: the input of the first layer.
            memories: keys and values of each layer, B x H x L x 2D/H.
            crosses: those of the sources; None in an encoder.
            padding: booleans, B x S, the hidden positions of the sources.
            starts, ends, paths: see `kernels.projections` and `kernels.attention`.
        """
        x = x.contiguous()
        y, normed = (torch.empty_like(x) for _ in range(2))
        query, found = (x.new_empty(*x.shape[:-1], self._width) for _ in range(2))
        inner = x.new_empty(*x.shape[:-1], self._inner)
        hidden = None
        if padding is not None:
            rows_are_contiguous = padding.stride(1) == 1
            hidden = (padding if rows_are_contiguous else padding.contiguous()).view(
                torch.uint8
            )
        for layer, memory, cross in zip(self._layers, memories, crosses, strict=True):
            residual = layer.qkv.project(x, normed, query, memory, starts, paths)
            self._attend(
                query,
                memory,
                found,
                ends,
                paths,
                hidden if cross is None else None,
                self._bias,
            )
            layer.out(found, y, other=residual)
            if cross is not None:
                residual = layer.cross_q(y, query, normed)
                self._attend(query, cross, found, None, None, hidden, None)
                layer.cross_out(found, y, other=residual)
            gate = None
            if layer.gate is not None:
                layer.gate(y, inner)
                gate = inner
            residual = layer.fc1(y, inner, normed, gate)
            layer.fc2(inner, y, other=residual)
            x = y
        for norm in self._last:
            _normalise(y, norm)
        return y

    def _attend(
        self,
        query: Tensor,
        memory: Tensor,
        y: Tensor,
        ends: Tensor | None,
        paths: Tensor | None,
        hidden: Tensor | None,
        distance_bias: DistanceTables | None,
    ) -> None:
        """Write to y, of the shape of `query`, what queries find in a layer's memory; see `kernels.attention`."""
        batch, width, dim = query.shape
        heads = dim // self._head_dim
        tiles = _tiles(width) if paths is None else width
        bias = None
        if distance_bias is not None:
            bias = distance_bias.reaching(memory.size(2))
        kernels.attention[batch * heads, tiles](
            *(query, memory, ends, paths, hidden, bias, y),
            *(width, _length(paths), memory.size(2)),
            *_steps(memory),
            0 if hidden is None else hidden.stride(0),
            0 if bias is None else bias.stride(0),
            *(self._scaling, dim, self._head_dim),
            per_token=ends is not None and ends.dim() == 2,
            num_warps=4,
            # the loop mostly runs once: more stages would bring keys and values through shared memory
            num_stages=1,
            **launch_options(query.device),
        )


def _normalise(x: Tensor, norm: Norm) -> None:
    """Replace x, ... x D, by norm(x)."""
    dim = x.size(-1)
    rows = x.numel() // dim
    padded_dim = 1 << (dim - 1).bit_length()
    kernels.norm[(rows,)](
        x, *norm, x, dim, padded_dim, num_warps=4, **launch_options(x.device)
    )


class TritonDecoderLayers(_Stack):
    """The layers and the last norm of a `TransformerDecoderBase`, as `plain.layers.DecoderLayers`.

    Nothing here waits for the device, and all of it can be captured in a graph.
    """

    def layered(
        self,
        x: Tensor,
        memory: Tensor,
        positions: Tensor,
        sources: tuple[Tensor, Tensor | None],
        reach: Tensor | None = None,
        wanted: Tensor | None = None,
        paths: Tensor | None = None,
    ) -> Tensor:
        """Run the layers on a block, or on trees, B x W x D -> B x W x D; see `Passes.features`.

        Tokens that would be written beyond the capacity of `memory` are not, and their results have no meaning.

        Args:
            x: the input of the first layer.
            memory: layers x B x H x C x 2D/H, cached keys and values, to which the block's are added; a view.
            positions: B x W, of the tokens; consecutive but for `paths`.
            sources: the sources' keys and values, layers x B x H x S x 2D/H, a view; and booleans, B x S, their hidden
                positions; None: nothing is hidden.
            reach: B x W, the last position that each token attends to; None: its own.
            wanted: B x k, the columns of the result; None: all.
            paths: B x W x L, the slots of `memory` that a token attends to, position by position; its own slot, to
                which it is written, from its position on. None: slots are positions.
        """
        starts = (positions if paths is not None else positions[:, 0]).contiguous()
        ends = starts if reach is None else reach.contiguous()
        paths = None if paths is None else paths.contiguous()
        cross, padding = sources
        x = self._run(
            x, memory.unbind(0), cross.unbind(0), padding, starts, ends, paths
        )
        if wanted is None:
            return x
        return x.gather(1, wanted[..., None].expand(-1, -1, x.size(-1)))


class TritonEncoderLayers(_Stack):
    """The layers and the last norm of a `TransformerEncoderBase`."""

    def __call__(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """Run the layers, B x S x C -> B x S x C; `padding`: booleans, B x S, the hidden positions."""
        batch, length, _ = x.shape
        heads = self._width // self._head_dim
        memory = x.new_empty(batch, heads, length, 2 * self._head_dim)
        layers = len(self._layers)
        return self._run(x, [memory] * layers, [None] * layers, padding)


def _check(layer: Any, first: Any) -> None:
    """Raise `ValueError` if the kernels do not support a layer after a `first` one."""
    dim, head_dim, inner, _ = _sizes(layer)
    activation = layer.activation_fn
    objections = {
        "layers of several sizes": _sizes(layer) != _sizes(first),
        f"the activation {activation}": activation is None
        or activation not in ACTIVATIONS,
        f"heads of {head_dim} elements, not of {', '.join(map(str, _HEAD_DIMS))}": head_dim
        not in _HEAD_DIMS,
        f"layers of {dim} elements and {inner} inside, not multiples of {_ROWS}": dim
        % _ROWS
        or inner % _ROWS,
        f"layers of {dim} elements, above {_MOST_INPUTS}, for which registers do not suffice": dim
        > _MOST_INPUTS,
    }
    for objection, applies in objections.items():
        if applies:
            raise ValueError(objection)


def _sizes(layer: Any) -> tuple[int, ...]:
    attention = layer.self_attn
    return (
        attention.q_proj.in_features,
        attention.head_dim,
        layer.fc1.out_features,
        layer.normalize_before,
    )


def _tiles(rows: int) -> int:
    return -(-rows // _ROWS)


def _length(paths: Tensor | None) -> int:
    return 0 if paths is None else paths.size(2)


def _steps(memory: Tensor) -> list[int]:
    """The strides of keys and values, B x H x L x 2D/H, in entries of 2D/H elements."""
    return [stride // memory.size(3) for stride in memory.stride()[:3]]
