"""The kernels of the layers against fairseq's layers and the engine's, and their bits in blocks and in batches."""

from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.modules import gelu
from torch import Tensor, nn

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL
from fairseq_aggdec.engine.cuda.layers import (
    Norm,
    Product,
    TritonDecoderLayers,
    TritonEncoderLayers,
)
from fairseq_aggdec.engine.native.products import ACTIVATIONS
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.engine.plain.layers import KVCache
from tests.support.random_models import SHAPES, dictionary, random_network

VOCABULARY = dictionary(4)
LAYERS = 2
HEADS = 2
HEAD_DIM = 16
INNER = 48
DIM = HEADS * HEAD_DIM

pytestmark = pytest.mark.usefixtures("no_gradients", "products_as_on_tensor_cores")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).half()


def network(
    dim: int = DIM,
    inner: int = INNER,
    heads: int = HEADS,
    layers: int = LAYERS,
    arch: str = "transformer",
    **options: Any,
) -> Any:
    """A random model whose weights are halves, in single precision."""
    sizes = {
        "embed_dim": dim,
        "ffn_embed_dim": inner,
        "attention_heads": heads,
        "layers": layers,
    }
    of_sides = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in sizes.items()
    }
    model = random_network(arch, 1, VOCABULARY, VOCABULARY, **of_sides, **options)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.RMSNorm):
            module.eps = 0.01
    return model.half().float()


POST_NORM: dict[str, Any] = {}
PRE_NORM = {
    "encoder_normalize_before": True,
    "decoder_normalize_before": True,
    "activation_fn": "gelu",
}
T5 = {
    **SHAPES["T5"],
    "arch": "hub_t5",
    "head_dim": HEAD_DIM,
    "dim": DIM + 16,
    # of two, unscaled scores and a gate leave more than that
    "layers": 1,
}
KINDS = pytest.mark.parametrize(
    "options",
    [POST_NORM, PRE_NORM, T5],
    ids=["post-norm", "pre-norm and GELU", "T5"],
)


def assert_close(found: Tensor, exact: Tensor) -> None:
    """Rounding to 11 bits, layer after layer, leaves an error of about a thousandth."""
    assert float((found.float() - exact).norm() / exact.norm()) < 2e-3


class Rows:
    """Some rows' sources and caches, read by the kernels and by PyTorch's operations in single precision."""

    def __init__(
        self,
        model: Any,
        lengths: list[int],
        capacity: int = 64,
        longest: int = 9,
        loudest: float = 1,
    ) -> None:
        """
        Args:
            lengths: of the sources; those of odd rows have their padding on the left.
            capacity: of the cache.
            longest: of the sources with padding.
            loudest: factor of the last position's key and value; the first one's is 1.
        """
        self.exact = PlainBackend(
            AS_THE_MODEL, model.decoder.embed_tokens.weight
        ).decoder_layers(model.decoder)
        count = len(model.decoder.layers)
        rows = len(lengths)
        shape = (count, rows, HEADS, longest, 2 * HEAD_DIM)
        loudness = torch.linspace(1, loudest, longest)[:, None]
        self.cross = loudness.half() * normal(*shape, seed=1)
        place = torch.arange(longest)
        self.padding = torch.stack(
            [
                place < longest - n if row % 2 else place >= n
                for row, n in enumerate(lengths)
            ]
        )
        self.exact.attend_to(self.cross.float(), self.padding)
        self.cache = KVCache(count, HEADS, HEAD_DIM)
        self.cache.start(rows, self.cross.float())
        self.kernels = TritonDecoderLayers(deepcopy(model.decoder).half())
        shape = (count, rows, HEADS, capacity, 2 * HEAD_DIM)
        self.memory = torch.full(shape, torch.nan).half()

    def read(self, x: Tensor, positions: Tensor, **options: Any) -> Tensor:
        return self.kernels.layered(
            x, self.memory, positions, (self.cross, self.padding), **options
        )

    def assert_read_rightly(
        self,
        x: Tensor,
        starts: list[int],
        reach: Tensor | None = None,
    ) -> None:
        first = torch.tensor(starts)[:, None]
        last = max(starts) + x.size(1)
        exact = self.exact.block(
            x.float(),
            self.cache,
            first,
            last,
            reach=reach,
        )
        assert_close(self.read(x, first, reach=reach), exact)
        for row, start in enumerate(starts):
            read = (
                slice(None),
                row,
                slice(None),
                slice(start + x.size(1)),
            )
            assert_close(self.memory[read], self.cache.memory[read])


@KINDS
def test_a_decoder_computes_what_pytorch_does(options: dict[str, Any]) -> None:
    rows = Rows(network(**options), [9, 5])
    dim = options.get("dim", DIM)
    rows.assert_read_rightly(normal(2, 3, dim), [0, 0])
    # the first row is rolled back
    rows.assert_read_rightly(normal(2, 2, dim, seed=1), [1, 3])


def test_a_decoder_without_biases_and_gains() -> None:
    model = network(layers=1)
    (layer,) = model.decoder.layers
    for module in layer.modules():
        if isinstance(module, nn.Linear):
            module.register_parameter("bias", None)
    layer.final_layer_norm = nn.LayerNorm(DIM, elementwise_affine=False)
    Rows(model, [9]).assert_read_rightly(normal(1, 2, DIM), [0])


def test_attention_over_several_tiles_of_which_the_first_may_be_hidden() -> None:
    rows = Rows(network(layers=1), [70, 3], longest=70, loudest=8)
    rows.assert_read_rightly(normal(2, 1, DIM), [0, 0])


def test_tokens_attend_as_far_as_they_are_told() -> None:
    rows = Rows(network(), [9, 5])
    rows.assert_read_rightly(normal(2, 1, DIM), [0, 0])
    reach = torch.tensor([[3, 3, 2], [0, 2, 2]])
    rows.assert_read_rightly(normal(2, 3, DIM, seed=1), [1, 0], reach)


@pytest.mark.parametrize("options", [POST_NORM, T5], ids=["post-norm", "T5"])
def test_tokens_of_trees_attend_to_their_paths(options: dict[str, Any]) -> None:
    rows = Rows(network(**options), [9, 5])
    dim = options.get("dim", DIM)
    rows.assert_read_rightly(normal(2, 4, dim), [0, 0])
    depths = torch.tensor([[4, 2, 5], [4, 4, 4]])
    paths = torch.tensor(
        [
            # the third token is after the first
            [
                [0, 1, 2, 3, 7, 7],
                [0, 1, 5, 5, 5, 5],
                [0, 1, 2, 3, 7, 6],
            ],
            [
                [0, 1, 2, 3, 4, 4],
                [0, 1, 2, 3, 5, 5],
                [0, 1, 2, 3, 6, 6],
            ],
        ]
    )
    x = normal(2, 3, dim, seed=1)
    exact = rows.exact.tree(x.float(), rows.cache, depths, paths, 8)
    assert_close(rows.read(x, depths, paths=paths), exact)
    assert_close(rows.memory[:, 0, :, 5:8], rows.cache.memory[:, 0, :, 5:8])


@KINDS
def test_an_encoder_computes_what_fairseq_does(options: dict[str, Any]) -> None:
    encoder = network(**options).encoder
    tokens = torch.tensor([[4, 5, 6, 7, 2], [5, 4, 2, 1, 1]])
    padding = tokens == VOCABULARY.pad()
    read: list[Tensor] = []
    encoder.layers[0].register_forward_pre_hook(lambda _, args: read.append(args[0]))
    (exact,) = encoder(tokens)["encoder_out"]
    (x,) = read
    if "T5" not in type(encoder).__name__:
        x = x.transpose(0, 1)
    found = TritonEncoderLayers(encoder.half())(x.half(), padding)
    assert_close(found[~padding], exact.transpose(0, 1)[~padding])


@pytest.mark.parametrize(
    "outputs, inputs, activation",
    [
        (32, 16, gelu),
        (16, 144, F.silu),
        (8, 528, gelu),
        (48, 32, F.silu),
    ],
)
def test_a_product_of_any_size_and_its_bits_in_1_to_33_rows(
    outputs: int, inputs: int, activation: Any
) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(inputs, outputs).half()
    layer_norm = nn.LayerNorm(inputs, eps=0.1).half()
    layer_norm.bias.normal_()
    norm = Norm.of(layer_norm, linear.weight[0])
    product = Product(
        (outputs, inputs),
        linear,
        norm=norm,
        residual_is_normed=True,
        activation=ACTIVATIONS[activation],
    )
    x = normal(33, inputs)
    residual = normal(33, outputs, seed=1)
    y = torch.empty_like(residual)
    normed = torch.empty_like(x)
    assert product(x, y, normed, residual) is normed
    exact = layer_norm.float()(x.float())
    assert_close(normed, exact)
    assert_close(y, activation(linear.float()(exact)) * residual)
    for rows in (1, 8, 9, 17, 32):  # of up to 8 rows, no others are computed
        alone = torch.empty_like(y[:rows])
        normed = torch.empty_like(x[:rows])
        last = (tensor[-rows:].contiguous() for tensor in (x, residual))
        product(next(last), alone, normed, next(last))
        assert torch.equal(alone, y[-rows:]), rows


def test_a_token_has_the_same_bits_alone_in_a_block_in_a_batch_and_in_a_tree() -> None:
    model = network()
    x = normal(1, 3, DIM)
    start = torch.zeros(1, 1, dtype=torch.long)
    block = Rows(model, [5])
    together = block.read(x, start)
    memory = block.memory[:, :, :, :3]

    # one by one
    alone = Rows(model, [5], capacity=70)
    alone.cross = block.cross
    found = [alone.read(x[:, [place]], start + place) for place in range(3)]
    assert torch.equal(torch.cat(found, 1), together)
    assert torch.equal(alone.memory[:, :, :, :3], memory)

    # beside a longer row, over a part of a buffer
    batch = Rows(model, [70, 5], capacity=70, longest=70)
    batch.padding[1] = torch.arange(70) >= 5
    batch.cross[:, 1, :, :9] = block.cross[:, 0]
    batch.cross[:, 1, :, 9:] = torch.nan  # padding, whatever it holds
    shape = (LAYERS, 3, HEADS, 80, 2 * HEAD_DIM)
    wider = torch.full(shape, torch.nan).half()
    wider[:, 1, :, 3:68] = normal(
        LAYERS,
        HEADS,
        65,
        2 * HEAD_DIM,
        seed=3,
    )
    batch.memory = wider[:, 1:, :, 3:73]
    both = torch.cat([normal(1, 3, DIM, seed=2), x])
    read = batch.read(both, torch.tensor([[65], [0]]))
    assert torch.equal(read[1:], together)
    assert torch.equal(batch.memory[:, 1:, :, :3], memory)
    for around in (
        wider[:, 0],
        wider[..., :3, :],
        wider[:, 1, :, 71:],
        wider[:, 2, :, 6:],
    ):
        assert bool(around.isnan().all())

    # as a leaf
    tree = Rows(model, [5])
    tree.read(x[:, :2], start)
    paths = torch.tensor([[[0, 1, 9], [0, 1, 5]]])
    leaves = tree.read(
        x[:, [2, 2]],
        torch.full((1, 2), 2),
        paths=paths,
    )
    assert torch.equal(leaves, together[:, [2, 2]])


def test_tokens_behind_the_capacity_are_not_written() -> None:
    rows = Rows(network(), [9, 5])
    rows.memory[:] = 0
    rows.read(normal(2, 3, DIM), torch.tensor([[62], [0]]))
    assert bool((rows.memory[:, 0, :, 62:] != 0).any(-1).all())
    assert bool((rows.memory[:, 0, :, :62] == 0).all())
    assert bool((rows.memory[:, 1, :, 3:] == 0).all())


@pytest.mark.parametrize(
    "sizes, message",
    [
        ({"dim": 32, "heads": 4}, "heads of 8 elements"),
        (
            {"dim": 16, "inner": 40, "heads": 1},
            "layers of 16 elements and 40 inside",
        ),
        (
            {"dim": 2048, "heads": 16, "layers": 1},
            "layers of 2048 elements, above 1024",
        ),
        ({"activation_fn": "tanh"}, "tanh"),
        ({}, "several sizes"),
    ],
)
def test_models_that_the_kernels_cannot_compute_are_refused_by_name(
    sizes: dict[str, Any], message: str
) -> None:
    model = network(**sizes).half()
    if message == "several sizes":
        model.decoder.layers[1].fc1 = nn.Linear(DIM, 64).half()
    with pytest.raises(ValueError, match=message):
        TritonDecoderLayers(model.decoder)
