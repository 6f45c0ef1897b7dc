"""Linear layers, encoder layers and decoder layers by the kernels."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from fairseq.modules import gelu
from torch import Tensor, nn

from fairseq_aggdec.decoding import top_k
from fairseq_aggdec.decoding.tokens import Ragged
from fairseq_aggdec.engine.native.library import Kernels, available_cpus, kernels
from fairseq_aggdec.engine.plain import choice
from fairseq_aggdec.engine.plain.choice import Bans, LogProbs
from fairseq_aggdec.engine.plain.layers import KVCache, Positions
from fairseq_aggdec.engine.weights import fused_weights, head_by_head
from fairseq_aggdec.models.transformer_parts import layers_of

_ADDRESS, _I64 = ctypes.c_void_p, ctypes.c_int64
ACTIVATIONS: dict[Any, int] = {None: 0, F.relu: 1, torch.relu: 1, gelu: 2}  # numbers in kernels.c

_WEIGHT_TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}  # numbers in kernels.c
_WEIGHTS_IN_CACHE = 8_000_000
"""number of weights above which a model is read from memory for every pass"""
_LEVELS, _ZERO = 127, 128  # as in kernels.c


class _CProduct(ctypes.Structure):
    """`Product` of kernels.c, where the fields are described."""

    _fields_ = (
        *((name, _ADDRESS) for name in ("weight", "bias", "scales", "offsets")),
        *((name, _I64) for name in ("inputs", "outputs", "kept")),
    )


class PackedProduct:
    """activation(x W^T + b), ... x I -> ... x O, with weights packed for the kernels.

    Weights of a checkpoint trained with --fp16 or --bf16 fit into 16 bits. They are stored so and widened when they are
    read: the same numbers, with half as much to read from memory.

    In 8-bit integers every row of weights and every row of inputs has a scale of its own; sums are not rounded.
    """

    def __init__(
        self,
        found: Kernels,
        weight: Tensor,
        bias: Tensor | None,
        activation: Any = None,
        quantised: bool = False,
        together: int = 0,
    ) -> None:
        """Copy a weight, O x I, in single precision on the CPU, and a bias, O.

        `together`: number of weights of the whole model, if the product is a part of one.
        """
        weight, bias = weight.detach(), None if bias is None else bias.detach()
        (outputs, inputs), panel = weight.shape, found.panel
        if bias is not None and bias.shape != (outputs,):
            raise ValueError(f"{tuple(bias.shape)} biases of {outputs} outputs")
        panels = -(-outputs // panel)
        more = panels * panel - outputs
        scales = offsets = None
        if quantised:
            peaks = weight.abs().amax(dim=1)
            scales = F.pad(peaks / _LEVELS / _LEVELS, (0, more))
            rounded = (weight * (_LEVELS / peaks.clamp(min=torch.finfo(torch.float32).tiny))[:, None]).round_()
            rounded = F.pad(rounded.to(torch.int8), (0, -inputs % 4, 0, more))
            offsets = rounded.sum(dim=1, dtype=torch.int32) * _ZERO
            packed = rounded.view(panels, panel, -1, 4).transpose(1, 2)
        else:
            if max(together, weight.numel()) > _WEIGHTS_IN_CACHE:
                weight = _narrowed(weight)
            packed = F.pad(weight, (0, 0, 0, more)).view(panels, panel, inputs).transpose(1, 2)
        biases = F.pad(torch.zeros(outputs, dtype=torch.float) if bias is None else bias, (0, more))
        self._alive = (packed.contiguous(), biases, scales, offsets)
        self._kernels, self._activation = found, ACTIVATIONS[activation]
        self.as_c = _CProduct(*map(_address, self._alive), inputs, outputs, _WEIGHT_TYPES[weight.dtype])
        """valid as long as this object"""

    def __call__(self, x: Tensor) -> Tensor:
        if x.dtype != torch.float32 or x.size(-1) != self.as_c.inputs:
            raise RuntimeError(f"{x.dtype} of {tuple(x.shape)} for a product of {self.as_c.inputs} elements in fp32")
        x = x.contiguous()
        y = x.new_empty(*x.shape[:-1], self.as_c.outputs)
        rows, threads = x.numel() // self.as_c.inputs, _threads()
        address = ctypes.addressof(self.as_c)
        _check(self._kernels.product(address, x.data_ptr(), y.data_ptr(), rows, self._activation, threads))
        return y


def _narrowed(weight: Tensor) -> Tensor:
    """The same values in 16 bits, or unchanged where 16 bits cannot represent them all."""
    for kept in (torch.float16, torch.bfloat16):
        narrow = weight.to(kept)
        if torch.equal(narrow.to(weight.dtype), weight):
            return narrow
    return weight


def _address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


class _CNorm(ctypes.Structure):
    _fields_ = (("gain", _ADDRESS), ("bias", _ADDRESS), ("epsilon", ctypes.c_double))


class _CLayer(ctypes.Structure):
    _fields_ = (
        *((name, _CNorm) for name in ("self_norm", "cross_norm", "final_norm")),
        *((name, _CProduct) for name in ("self_qkv", "self_out", "cross_q", "cross_out", "fc1", "fc2")),
    )


class _CStack(ctypes.Structure):
    _fields_ = (
        ("layers", _ADDRESS),
        ("last", _ADDRESS),
        *((name, _I64) for name in ("count", "dim", "heads", "inner", "activation", "norm_first")),
    )


class _CBlock(ctypes.Structure):
    """`Block` of kernels.c, where the fields are described."""

    _fields_ = (
        *((name, _ADDRESS) for name in ("x", "y", "rows", "columns", "starts", "reach", "depths", "paths", "wanted")),
        *((name, _ADDRESS) for name in ("memory", "cross", "padding")),
        *((name, _I64) for name in ("tokens", "width", "longest", "wanted_columns")),
        *((name, _I64) for name in ("memory_layer", "memory_row", "capacity", "cross_layer", "cross_row", "source")),
        ("threads", _I64),
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
            _CProduct() if cross is None else self._product((dim, dim), cross.q_proj),
            _CProduct() if cross is None else self._product((dim, dim), cross.out_proj),
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
        return _CNorm(*map(_address, numbers), module.eps)

    def _check_input(self, x: Tensor) -> None:
        if x.size(-1) != self._dim:
            raise RuntimeError(f"{x.size(-1)} features of a token for layers of {self._dim}")

    def _product(self, shape: tuple[int, int], *projections: nn.Linear, order: Tensor | None = None) -> _CProduct:
        """Pack the weights of a product, outputs x inputs; raises `ValueError` for another shape, as if pruned."""
        weight, bias = fused_weights(*projections, order=order)
        if weight.shape != shape:
            raise ValueError(
                f"a product of {tuple(weight.shape)} weights, where the first layer's sizes ask for {shape}"
            )
        product = PackedProduct(self._kernels, weight, bias, None, self._quantised, self._weights)
        self._alive.append(product)
        self.narrow |= product.as_c.kept != _WEIGHT_TYPES[torch.float32]
        return product.as_c


class EncoderStack(_Stack):
    """The layers and the last norm of a `TransformerEncoderBase`, without dropout."""

    def __call__(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """Run the layers, B x S x C -> B x S x C; `padding`: booleans, B x S, the hidden positions."""
        self._check_input(x)
        x, hidden = x.contiguous(), None if padding is None else padding.contiguous()
        y, threads = torch.empty_like(x), _threads()
        stack = ctypes.addressof(self._stack)
        _check(self._kernels.encode(stack, x.data_ptr(), y.data_ptr(), _address(hidden), x.size(0), x.size(1), threads))
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
            padding=_address(padding),
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
            threads=_threads(),
            **{name: number.data_ptr() for name, number in numbers.items()},
        )
        _check(self._kernels.decode(ctypes.addressof(self._stack), ctypes.addressof(block)))
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
        tables = (self._words.data_ptr(), symbols, self._scale, *more, _address(places), limit)
        numbers = (tokens.data_ptr(), _address(given), first, tokens.numel(), dim)
        if self._kernels.embed(*tables, *numbers, x.data_ptr(), _threads()) != 0:
            raise IndexError(f"a token is not one of the {symbols} symbols")
        return x


def best_entries(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`top_k.best_entries`, in C for single precision; equal scores are in the order of their tokens."""
    found = kernels()
    if found is None or scores.dtype != torch.float32 or scores.numel() == 0:
        return top_k.best_entries(scores, count)
    scores = scores.contiguous()
    values, tokens = scores.new_empty(scores.size(0), count), scores.new_empty(scores.size(0), count, dtype=torch.long)
    addresses = (values.data_ptr(), tokens.data_ptr())
    found.best(scores.data_ptr(), *scores.shape, count, *addresses, _threads())
    return values, tokens


def likeliest(logits: Tensor, count: int, bans: Bans) -> tuple[Tensor, Tensor, LogProbs | Tensor]:
    """`choice.likeliest`, in C for single precision; equal scores are in the order of their tokens."""
    found = kernels()
    if found is None or logits.dtype != torch.float32 or logits.numel() == 0:
        return choice.likeliest(logits, count, bans)
    logits, (rows, width) = logits.contiguous(), logits.shape
    values, tokens = logits.new_empty(rows, count), logits.new_empty(rows, count, dtype=torch.long)
    normals = logits.new_empty(rows, 2)
    addresses = (values.data_ptr(), tokens.data_ptr(), normals.data_ptr())
    banned = (bans.never, bans.late, _address(bans.early))
    found.likeliest(logits.data_ptr(), rows, width, count, *banned, *addresses, _threads())
    return values, tokens, LogProbs(logits, normals, bans)


class _CChain(ctypes.Structure):
    """`Chain` of kernels.c, where the fields are described."""

    _fields_ = (
        *((name, _ADDRESS) for name in ("before", "after", "here", "candidates", "scores", "last", "tokens")),
        *((name, _I64) for name in ("rows", "k", "count", "dim")),
    )


def chain(
    found: Kernels, before: Tensor, after: Tensor, here: Tensor, candidates: Tensor, scores: Tensor, last: Tensor
) -> Tensor:
    """See `PlainBackend.chain`; `found`: the kernels."""
    inputs = [x.contiguous() for x in (before, after, here, candidates, scores, last)]
    tokens = candidates.new_empty(candidates.shape[:2])
    addresses = [x.data_ptr() for x in (*inputs, tokens)]
    as_c = _CChain(*addresses, *candidates.shape, before.size(1))
    found.chain(ctypes.addressof(as_c))
    return tokens


_CPUS = available_cpus()


def _threads() -> int:
    """The number of threads of a kernel."""
    return min(torch.get_num_threads(), _CPUS)


def _check(status: int) -> None:
    if status != 0:
        raise MemoryError("not enough memory for a block of this size: decode smaller batches")
