"""Encoder layers, decoder layers and the input of the first one by the kernels."""

import ctypes
from typing import Any

import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor, nn

from fairseq_aggdec.decoding.tokens import Ragged
from fairseq_aggdec.engine.native.library import ADDRESS, I64, Kernels, address, check, threads
from fairseq_aggdec.engine.native.products import ACTIVATIONS, WEIGHT_TYPES, CProduct, PackedProduct
from fairseq_aggdec.engine.plain.layers import KVCache, Positions
from fairseq_aggdec.engine.weights import fused_weights, head_by_head
from fairseq_aggdec.models.transformer_parts import layers_of


class _CNorm(ctypes.Structure):
    _fields_ = (("gain", ADDRESS), ("bias", ADDRESS), ("epsilon", ctypes.c_double))


class _CLayer(ctypes.Structure):
    _fields_ = (
        *((name, _CNorm) for name in ("self_norm", "cross_norm", "final_norm")),
        *((name, CProduct) for name in ("self_qkv", "self_out", "cross_q", "cross_out", "fc1", "fc2")),
    )


class _CStack(ctypes.Structure):
    _fields_ = (
        ("layers", ADDRESS),
        ("last", ADDRESS),
        *((name, I64) for name in ("count", "dim", "heads", "inner", "activation", "norm_first")),
    )


class _CBlock(ctypes.Structure):
    """`Block` of kernels.c, where the fields are described."""

    _fields_ = (
        *((name, ADDRESS) for name in ("x", "y", "rows", "columns", "starts", "reach", "depths", "paths", "wanted")),
        *((name, ADDRESS) for name in ("memory", "cross", "padding")),
        *((name, I64) for name in ("tokens", "width", "longest", "wanted_columns")),
        *((name, I64) for name in ("memory_layer", "memory_row", "capacity", "cross_layer", "cross_row", "source")),
        ("threads", I64),
    )


class _Stack:
    """A model's layers, copied into a `Stack` of kernels.c."""

    def __init__(self, model: TransformerEncoderBase | TransformerDecoderBase, found: Kernels, quantised: bool) -> None:
        """`quantised`: multiply in 8-bit integers."""
        self._kernels, self._quantised = found, quantised
        self._weights = sum(weight.numel() for weight in model.layers.parameters())
        self.narrow = False
        """whether weights are stored in 16 bits"""
        self._alive: list[Any] = []  # objects to which the structures point
        first = model.layers[0]
        self._dim, self._inner = first.self_attn.embed_dim, first.fc1.out_features
        layers = (_CLayer * len(model.layers))(*map(self._layer, layers_of(model)))
        last = None if model.layer_norm is None else self._norm(model.layer_norm)
        self._alive += [layers, last]
        self._stack = _CStack(
            ctypes.addressof(layers),
            None if last is None else ctypes.addressof(last),
            len(layers),
            self._dim,
            first.self_attn.num_heads,
            self._inner,
            ACTIVATIONS[first.activation_fn],
            first.normalize_before,
        )

    def _layer(self, layer: Any) -> _CLayer:
        own, cross = layer.self_attn, getattr(layer, "encoder_attn", None)
        order = torch.cat([torch.arange(own.embed_dim), own.embed_dim + head_by_head(own)])
        dim, inner = self._dim, self._inner
        return _CLayer(
            self._norm(layer.self_attn_layer_norm),
            _CNorm() if cross is None else self._norm(layer.encoder_attn_layer_norm),
            self._norm(layer.final_layer_norm),
            self._product((3 * dim, dim), own.q_proj, own.k_proj, own.v_proj, order=order),
            self._product((dim, dim), own.out_proj),
            CProduct() if cross is None else self._product((dim, dim), cross.q_proj),
            CProduct() if cross is None else self._product((dim, dim), cross.out_proj),
            self._product((inner, dim), layer.fc1),
            self._product((dim, inner), layer.fc2),
        )

    def _norm(self, module: nn.LayerNorm) -> _CNorm:
        numbers: list[Tensor | None] = [None, None]
        if module.weight is not None:
            bias = torch.zeros_like(module.weight) if module.bias is None else module.bias
            numbers = [module.weight.detach().clone(), bias.detach().clone()]
        if module.normalized_shape != (self._dim,) or any(x is not None and x.shape != (self._dim,) for x in numbers):
            raise ValueError(f"a norm of {tuple(module.normalized_shape)} numbers, in layers of {self._dim}")
        self._alive += numbers
        return _CNorm(*map(address, numbers), module.eps)

    def _check_input(self, x: Tensor) -> None:
        if x.size(-1) != self._dim:
            raise RuntimeError(f"{x.size(-1)} features of a token for layers of {self._dim}")

    def _product(self, shape: tuple[int, int], *projections: nn.Linear, order: Tensor | None = None) -> CProduct:
        """Pack the weights of a product, outputs x inputs; raises `ValueError` for another shape, as if pruned."""
        weight, bias = fused_weights(*projections, order=order)
        if weight.shape != shape:
            raise ValueError(
                f"a product of {tuple(weight.shape)} weights, where the first layer's sizes ask for {shape}"
            )
        product = PackedProduct(self._kernels, weight, bias, None, self._quantised, self._weights)
        self._alive.append(product)
        self.narrow |= product.as_c.kept != WEIGHT_TYPES[torch.float32]
        return product.as_c


class EncoderStack(_Stack):
    """The layers and the last norm of a `TransformerEncoderBase`, without dropout."""

    def __call__(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """Run the layers, B x S x C -> B x S x C; `padding`: booleans, B x S, the hidden positions."""
        self._check_input(x)
        x, hidden = x.contiguous(), None if padding is None else padding.contiguous()
        y, count = torch.empty_like(x), threads()
        stack = ctypes.addressof(self._stack)
        check(self._kernels.encode(stack, x.data_ptr(), y.data_ptr(), address(hidden), x.size(0), x.size(1), count))
        return y


class DecoderStack(_Stack):
    """The layers and the last norm of a `TransformerDecoderBase`, without dropout, as `plain.layers.DecoderLayers`."""

    def attend_to(self, cross: Tensor, padding: Tensor | None) -> None:
        if cross.size(2) * cross.size(4) != 2 * self._dim:
            raise RuntimeError(f"keys and values of {tuple(cross.shape)} for layers of {self._dim}")
        self._cross, self._padding = cross, padding

    def block(
        self,
        x: Tensor,
        cache: KVCache,
        positions: Tensor,
        end: int,
        *,
        ragged: Ragged | None = None,
        **more: Tensor | None,
    ) -> Tensor:
        """`more`: `reach` and `wanted`, as there."""
        return self._run(x, cache, ragged, starts=positions, **{name: x for name, x in more.items() if x is not None})

    def tree(
        self, x: Tensor, cache: KVCache, positions: Tensor, paths: Tensor, end: int, ragged: Ragged | None = None
    ) -> Tensor:
        return self._run(x, cache, ragged, depths=positions, paths=paths)

    def _run(self, x: Tensor, cache: KVCache, ragged: Ragged | None, **numbers: Tensor) -> Tensor:
        """Call `aggdec_decode`; `numbers`: tensors by their names in `Block`."""
        self._check_input(x)
        if ragged is not None:
            numbers |= {"rows": ragged.rows, "columns": ragged.columns}
        numbers = {name: number.contiguous() for name, number in numbers.items()} | {"x": x.contiguous()}
        wanted, paths = numbers.get("wanted"), numbers.get("paths")
        y = x.new_empty(x.shape if wanted is None else (*wanted.shape, x.size(-1)))
        memory, cross, padding = cache.memory, self._cross, self._padding
        block = _CBlock(
            y=y.data_ptr(),
            memory=memory.data_ptr(),
            cross=cross.data_ptr(),
            padding=address(padding),
            tokens=x.numel() // x.size(-1),
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
            **{name: number.data_ptr() for name, number in numbers.items()},
        )
        check(self._kernels.decode(ctypes.addressof(self._stack), ctypes.addressof(block)))
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
        self._words, self._scale, self._positions = words.detach().contiguous(), scale, positions
        self._extra_embeddings = (
            words.new_empty(0) if extra_embeddings is None else extra_embeddings.detach().contiguous()
        )

    def __call__(self, tokens: Tensor, positions: Tensor | range, end: int) -> Tensor:
        """Embed tokens, ... -> ... x D, at `positions`, below `end` except in padding; a range stands for one row.

        Raises `IndexError` where a token is not in the vocabulary.
        """
        tokens, first, given = tokens.contiguous(), 0, None
        if isinstance(positions, range):
            first = positions.start
        else:
            given = positions.contiguous()
        places, limit = None, 0
        if self._positions is not None:
            places = self._positions.reaching(end)
            limit = places.size(0)
        symbols, dim = self._words.shape
        x = self._words.new_empty(*tokens.shape, dim)
        more = (self._extra_embeddings.data_ptr(), self._extra_embeddings.size(0))
        tables = (self._words.data_ptr(), symbols, self._scale, *more, address(places), limit)
        numbers = (tokens.data_ptr(), address(given), first, tokens.numel(), dim)
        if self._kernels.embed(*tables, *numbers, x.data_ptr(), threads()) != 0:
            raise IndexError(f"a token is not one of the {symbols} symbols")
        return x
