"""Encoder layers, decoder layers and the input of the first one by the kernels."""

import ctypes
from typing import Any

import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor, nn

from fairseq_aggdec.decoding.tokens import Ragged
from fairseq_aggdec.engine.native.library import (
    ADDRESS,
    I64,
    Kernels,
    address,
    check,
    fields,
    threads,
)
from fairseq_aggdec.engine.native.products import (
    ACTIVATIONS,
    WEIGHT_TYPES,
    CProduct,
    PackedProduct,
)
from fairseq_aggdec.engine.plain.layers import KVCache, Positions, distance_bias
from fairseq_aggdec.engine.weights import (
    fused_weights,
    queries_and_heads,
    width_of,
)
from fairseq_aggdec.models.transformer_parts import layers_of


class _CNorm(ctypes.Structure):
    _fields_ = (
        *fields(ADDRESS, "gain bias"),
        *fields(ctypes.c_double, "epsilon"),
    )


class _CLayer(ctypes.Structure):
    _fields_ = (
        *fields(_CNorm, "self_norm cross_norm final_norm"),
        *fields(CProduct, "self_qkv self_out cross_q cross_out fc1 fc2 gate"),
    )


class _CStack(ctypes.Structure):
    _fields_ = (
        *fields(ADDRESS, "layers last"),
        *fields(I64, "count dim heads size inner activation norm_first"),
        *fields(ctypes.c_double, "scale"),
    )


class _CBlock(ctypes.Structure):
    """`Block` of kernels.c, where the fields are described."""

    _fields_ = (
        *fields(ADDRESS, "x y rows columns starts reach depths paths wanted"),
        *fields(ADDRESS, "memory cross padding bias"),
        *fields(I64, "bias_step"),
        *fields(I64, "tokens width longest wanted_columns"),
        *fields(I64, "memory_layer memory_row capacity"),
        *fields(I64, "cross_layer cross_row source"),
        *fields(I64, "threads"),
    )


class _Stack:
    """A model's layers, copied into a `Stack` of kernels.c."""

    def __init__(
        self,
        model: TransformerEncoderBase | TransformerDecoderBase,
        found: Kernels,
        quantised: bool,
    ) -> None:
        """`quantised`: multiply in 8-bit integers. Raises `ValueError` for layers of several sizes."""
        self._kernels = found
        self._quantised = quantised
        self._weights = sum(weight.numel() for weight in model.layers.parameters())
        self.narrow = False
        """whether weights are stored in 16 bits"""
        first = model.layers[0]
        attention = first.self_attn
        self._dim = attention.q_proj.in_features
        self._width = width_of(attention)
        self._inner = first.fc1.out_features
        self._bias = distance_bias(model)
        self._alive: list[Any] = []  # objects to which the structures point
        layers = (_CLayer * len(model.layers))(*map(self._layer, layers_of(model)))
        last = self._norm(model.layer_norm)
        self._alive += [layers, last]
        self._stack = _CStack(
            ctypes.addressof(layers),
            None if model.layer_norm is None else ctypes.addressof(last),
            len(layers),
            self._dim,
            attention.num_heads,
            attention.head_dim,
            self._inner,
            ACTIVATIONS[first.activation_fn],
            first.normalize_before,
            attention.scaling,
        )

    def _layer(self, layer: Any) -> _CLayer:
        attention = layer.self_attn
        cross = getattr(layer, "encoder_attn", None)
        gate = getattr(layer, "gate", None)
        dim = self._dim
        width = self._width
        inner = self._inner
        # weights are allocated in the order in which they are read
        of_layer = _CLayer()
        of_layer.self_norm = self._norm(layer.self_attn_layer_norm)
        of_layer.self_qkv = self._product(
            (3 * width, dim),
            attention.q_proj,
            attention.k_proj,
            attention.v_proj,
            order=queries_and_heads(attention),
        )
        of_layer.self_out = self._product((dim, width), attention.out_proj)
        if cross is not None:
            of_layer.cross_norm = self._norm(layer.encoder_attn_layer_norm)
            of_layer.cross_q = self._product((width, dim), cross.q_proj)
            of_layer.cross_out = self._product((dim, width), cross.out_proj)
        of_layer.final_norm = self._norm(layer.final_layer_norm)
        if gate is not None:
            of_layer.gate = self._product((inner, dim), gate)
        of_layer.fc1 = self._product((inner, dim), layer.fc1)
        of_layer.fc2 = self._product((dim, inner), layer.fc2)
        return of_layer

    def _norm(self, module: nn.LayerNorm | nn.RMSNorm | None) -> _CNorm:
        if module is None:
            return _CNorm()
        values: list[Tensor] = []
        if module.weight is not None:
            values.append(module.weight.detach().clone())
        if module.weight is not None and not isinstance(module, nn.RMSNorm):
            bias = module.bias
            if bias is None:
                bias = torch.zeros_like(module.weight)
            values.append(bias.detach().clone())
        shapes = [module.normalized_shape, *(x.shape for x in values)]
        if any(shape != (self._dim,) for shape in shapes):
            raise ValueError(
                f"a norm of {tuple(module.normalized_shape)} elements, in layers of {self._dim}"
            )
        self._alive += values
        norm = _CNorm(*map(address, values))
        norm.epsilon = module.eps
        return norm

    def _product(
        self,
        shape: tuple[int, int],
        *projections: nn.Linear,
        order: Tensor | None = None,
    ) -> CProduct:
        """Pack the weights of a product, outputs x inputs; raises `ValueError` for another shape, as if pruned."""
        weight, bias = fused_weights(*projections, order=order)
        if weight.shape != shape:
            raise ValueError(
                f"a product of {tuple(weight.shape)} weights, where the first layer's sizes ask for {shape}"
            )
        product = PackedProduct(
            self._kernels, weight, bias, None, self._quantised, self._weights
        )
        self._alive.append(product)
        self.narrow |= product.as_c.kept != WEIGHT_TYPES[torch.float32]
        return product.as_c

    def _bias_within(self, length: int) -> list[int | None]:
        """The fields of `Bias` in kernels.c, for texts of this many tokens."""
        if self._bias is None:
            return [None, 0]
        table = self._bias.reaching(length)
        own = table[0, table.size(1) // 2 :]
        return [own.data_ptr(), table.stride(0)]

    def _check_input(self, x: Tensor) -> None:
        if x.size(-1) != self._dim:
            raise RuntimeError(
                f"{x.size(-1)} features of a token for layers of {self._dim}"
            )


class EncoderStack(_Stack):
    """The layers and the last norm of a `TransformerEncoderBase`, without dropout."""

    def __call__(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """Run the layers, B x S x C -> B x S x C; `padding`: booleans, B x S, the hidden positions."""
        self._check_input(x)
        x = x.contiguous()
        hidden = None if padding is None else padding.contiguous()
        y = torch.empty_like(x)
        stack = ctypes.addressof(self._stack)
        bias = self._bias_within(x.size(1))
        sizes = (x.size(0), x.size(1), threads())
        check(
            self._kernels.encode(
                stack, x.data_ptr(), y.data_ptr(), address(hidden), *bias, *sizes
            )
        )
        return y


class DecoderStack(_Stack):
    """The layers and the last norm of a `TransformerDecoderBase`, without dropout, as `plain.layers.DecoderLayers`."""

    def attend_to(self, cross: Tensor, padding: Tensor | None) -> None:
        if cross.size(2) * cross.size(4) != 2 * self._width:
            raise RuntimeError(
                f"keys and values of {tuple(cross.shape)} for heads of {self._width}"
            )
        self._cross = cross
        self._padding = padding

    def block(
        self,
        x: Tensor,
        cache: KVCache,
        positions: Tensor,
        end: int,
        *,
        ragged: Ragged | None = None,
        reach: Tensor | None = None,
        wanted: Tensor | None = None,
    ) -> Tensor:
        return self._run(
            x, cache, end, ragged, starts=positions, reach=reach, wanted=wanted
        )

    def tree(
        self,
        x: Tensor,
        cache: KVCache,
        positions: Tensor,
        paths: Tensor,
        end: int,
        ragged: Ragged | None = None,
    ) -> Tensor:
        return self._run(x, cache, end, ragged, depths=positions, paths=paths)

    def _run(
        self,
        x: Tensor,
        cache: KVCache,
        end: int,
        ragged: Ragged | None,
        *,
        wanted: Tensor | None = None,
        paths: Tensor | None = None,
        **others: Tensor | None,
    ) -> Tensor:
        """Call `aggdec_decode`; `end`: no position is as large; `others`: further tensors by their names in `Block`."""
        self._check_input(x)
        shape = x.shape if wanted is None else (*wanted.shape, self._dim)
        y = x.new_empty(shape)
        memory = cache.memory
        cross = self._cross
        given = {"x": x, "wanted": wanted, "paths": paths, **others}
        if ragged is not None:
            given |= {"rows": ragged.rows, "columns": ragged.columns}
        # held until the kernel returns
        tensors = {
            name: tensor.contiguous()
            for name, tensor in given.items()
            if tensor is not None
        }

        bias, bias_step = self._bias_within(end)

        # the arguments by the names of C's fields
        block = _CBlock(
            y=y.data_ptr(),
            memory=memory.data_ptr(),
            cross=cross.data_ptr(),
            padding=address(self._padding),
            bias=bias,
            bias_step=bias_step,
            tokens=x.numel() // self._dim,
            width=x.size(1) if ragged is None else ragged.width,
            longest=0 if paths is None else paths.size(1),
            wanted_columns=0 if wanted is None else wanted.size(1),
            memory_layer=memory.stride(0),
            memory_row=memory.stride(1),
            capacity=memory.size(3),
            cross_layer=cross.stride(0),
            cross_row=cross.stride(1),
            source=cross.size(3),
            threads=threads(),
            **{name: tensor.data_ptr() for name, tensor in tensors.items()},
        )
        check(
            self._kernels.decode(ctypes.addressof(self._stack), ctypes.addressof(block))
        )
        return y


class Embedding:
    """The input of a decoder's first layer: scaled token embeddings plus position embeddings."""

    def __init__(
        self,
        found: Kernels,
        words: Tensor,
        scale: float,
        positions: Positions | None,
        extra_embeddings: Tensor | None = None,
    ) -> None:
        """`words`: token embeddings, V x D, fp32, multiplied by `scale`; `extra_embeddings`: see `Parts`."""
        if positions is not None and positions.reaching(1).size(1) != words.size(1):
            raise ValueError("embeddings and positions differ in size")
        self._kernels = found
        self._words = words.detach().contiguous()
        self._scale = scale
        self._positions = positions
        self._more = (
            words.new_empty(0)
            if extra_embeddings is None
            else extra_embeddings.detach().contiguous()
        )

    def __call__(self, tokens: Tensor, positions: Tensor | range, end: int) -> Tensor:
        """Embed tokens, ... -> ... x D, at `positions`, below `end` except in padding; a range stands for one row.

        Raises `IndexError` where a token is not in the vocabulary.
        """
        symbols, dim = self._words.shape
        tokens = tokens.contiguous()

        # positions: the first one, or one for each token; and their table
        first = 0
        given = None
        if isinstance(positions, range):
            first = positions.start
        else:
            given = positions.contiguous()
        places = None if self._positions is None else self._positions.reaching(end)
        x = self._words.new_empty(*tokens.shape, dim)
        status = self._kernels.embed(
            self._words.data_ptr(),
            symbols,
            self._scale,
            self._more.data_ptr(),
            self._more.size(0),
            address(places),
            0 if places is None else places.size(0),
            tokens.data_ptr(),
            address(given),
            first,
            tokens.numel(),
            dim,
            x.data_ptr(),
            threads(),
        )
        if status != 0:
            raise IndexError(f"a token is not one of the {symbols} symbols")
        return x
