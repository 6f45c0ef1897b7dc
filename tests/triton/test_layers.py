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
from tests.support.random_models import dictionary, random_network

VOCABULARY = dictionary(4)
LAYERS, HEADS, HEAD_DIM, INNER = 2, 2, 16, 48
DIM = HEADS * HEAD_DIM

pytestmark = pytest.mark.usefixtures("products_as_on_tensor_cores")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).half()


def network(
    dim: int = DIM,
    inner: int = INNER,
    heads: int = HEADS,
    layers: int = LAYERS,
    **options: Any,
) -> Any:
    """A random Transformer whose weights are halves, in single precision."""
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
    model = random_network(
        "transformer", 1, VOCABULARY, VOCABULARY, **of_sides, **options
    )
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 0.01
    return model.half().float()


POST_NORM: dict[str, Any] = {}
PRE_NORM = {
    "encoder_normalize_before": True,
    "decoder_normalize_before": True,
    "activation_fn": "gelu",
}


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
        count, rows = len(model.decoder.layers), len(lengths)
        self.cross = torch.linspace(1, loudest, longest)[:, None].half() * normal(
            count, rows, HEADS, longest, 2 * HEAD_DIM, seed=1
        )
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
        self.memory = torch.full(
            (count, rows, HEADS, capacity, 2 * HEAD_DIM), torch.nan
        ).half()

    def read(self, x: Tensor, positions: Tensor, **options: Any) -> Tensor:
        return self.kernels.layered(
            x, self.memory, positions, (self.cross, self.padding), **options
        )

    def assert_read_rightly(
        self, x: Tensor, starts: list[int], reach: Tensor | None = None
    ) -> None:
        first = torch.tensor(starts)[:, None]
        exact = self.exact.block(
            x.float(), self.cache, first, max(starts) + x.size(1), reach=reach
        )
        assert_close(self.read(x, first, reach=reach), exact)
        for row, start in enumerate(starts):
            end = start + x.size(1)
            assert_close(
                self.memory[:, row, :, :end], self.cache.memory[:, row, :, :end]
            )


@torch.no_grad()
@pytest.mark.parametrize(
    "options", [POST_NORM, PRE_NORM], ids=["post-norm", "pre-norm and GELU"]
)
def test_a_decoder_computes_what_pytorch_does(options: dict[str, Any]) -> None:
    rows = Rows(network(**options), [9, 5])
    rows.assert_read_rightly(normal(2, 3, DIM), [0, 0])
    # the first row is rolled back
    rows.assert_read_rightly(normal(2, 2, DIM, seed=1), [1, 3])


@torch.no_grad()
def test_a_decoder_without_biases_and_gains() -> None:
    model = network(layers=1)
    (layer,) = model.decoder.layers
    for module in layer.modules():
        if isinstance(module, nn.Linear):
            module.register_parameter("bias", None)
    layer.final_layer_norm = nn.LayerNorm(DIM, elementwise_affine=False)
    Rows(model, [9]).assert_read_rightly(normal(1, 2, DIM), [0])


@torch.no_grad()
def test_attention_over_several_tiles_of_which_the_first_may_be_hidden() -> None:
    Rows(network(layers=1), [70, 3], longest=70, loudest=8).assert_read_rightly(
        normal(2, 1, DIM), [0, 0]
    )


@torch.no_grad()
def test_tokens_attend_as_far_as_they_are_told() -> None:
    rows = Rows(network(), [9, 5])
    rows.assert_read_rightly(normal(2, 1, DIM), [0, 0])
    rows.assert_read_rightly(
        normal(2, 3, DIM, seed=1), [1, 0], torch.tensor([[3, 3, 2], [0, 2, 2]])
    )


@torch.no_grad()
def test_tokens_of_trees_attend_to_their_paths() -> None:
    rows = Rows(network(), [9, 5])
    rows.assert_read_rightly(normal(2, 4, DIM), [0, 0])
    depths = torch.tensor([[4, 2, 5], [4, 4, 4]])
    paths = torch.tensor(
        [
            # the third token is behind the first
            [[0, 1, 2, 3, 7, 7], [0, 1, 5, 5, 5, 5], [0, 1, 2, 3, 7, 6]],
            [[0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 5, 5], [0, 1, 2, 3, 6, 6]],
        ]
    )
    x = normal(2, 3, DIM, seed=1)
    exact = rows.exact.tree(x.float(), rows.cache, depths, paths, 8)
    assert_close(rows.read(x, depths, paths=paths), exact)
    assert_close(rows.memory[:, 0, :, 5:8], rows.cache.memory[:, 0, :, 5:8])


@torch.no_grad()
@pytest.mark.parametrize(
    "options", [POST_NORM, PRE_NORM], ids=["post-norm", "pre-norm and GELU"]
)
def test_an_encoder_computes_what_fairseq_does(options: dict[str, Any]) -> None:
    encoder = network(**options).encoder
    x, padding = (
        normal(2, 5, DIM),
        torch.tensor([[False] * 5, [False] * 3 + [True] * 2]),
    )
    exact = x.float().transpose(0, 1)
    for layer in encoder.layers:
        exact = layer(exact, encoder_padding_mask=padding)
    if encoder.layer_norm is not None:
        exact = encoder.layer_norm(exact)
    found = TritonEncoderLayers(encoder.half())(x, padding)
    assert_close(found[~padding], exact.transpose(0, 1)[~padding])


@torch.no_grad()
@pytest.mark.parametrize(
    ("outputs", "inputs", "activation"),
    [(32, 16, gelu), (16, 144, F.silu), (8, 528, gelu), (48, 32, F.silu)],
)
def test_a_product_of_any_size_and_its_bits_in_1_to_33_rows(
    outputs: int, inputs: int, activation: Any
) -> None:
    torch.manual_seed(0)
    linear, layer_norm = (
        nn.Linear(inputs, outputs).half(),
        nn.LayerNorm(inputs, eps=0.1).half(),
    )
    layer_norm.bias.normal_()
    norm = Norm.of(layer_norm, linear.weight[0])
    product = Product(
        (outputs, inputs),
        linear,
        norm=norm,
        residual_is_normed=True,
        activation=ACTIVATIONS[activation],
    )
    x, residual = normal(33, inputs), normal(33, outputs, seed=1)
    y, normed = torch.empty_like(residual), torch.empty_like(x)
    assert product(x, y, normed, residual) is normed
    exact = layer_norm.float()(x.float())
    assert_close(normed, exact)
    assert_close(y, activation(linear.float()(exact)) + residual)
    for rows in (1, 8, 9, 17, 32):  # of up to 8 rows, no others are computed
        alone = torch.empty_like(y[:rows])
        product(
            x[-rows:].contiguous(),
            alone,
            torch.empty_like(x[:rows]),
            residual[-rows:].contiguous(),
        )
        assert torch.equal(alone, y[-rows:]), rows


@torch.no_grad()
def test_a_token_has_the_same_bits_alone_in_a_block_in_a_batch_and_in_a_tree() -> None:
    model = network()
    x, start = normal(1, 3, DIM), torch.zeros(1, 1, dtype=torch.long)
    block = Rows(model, [5])
    together = block.read(x, start)
    alone = Rows(model, [5], capacity=70)
    alone.cross = block.cross
    for place in range(3):
        assert torch.equal(
            alone.read(x[:, place : place + 1], start + place),
            together[:, place : place + 1],
        )
    assert torch.equal(alone.memory[:, :, :, :3], block.memory[:, :, :, :3])

    batch = Rows(model, [70, 5], capacity=70, longest=70)
    batch.padding[1] = torch.arange(70) >= 5
    batch.cross[:, 1, :, :9] = block.cross[:, 0]
    batch.cross[:, 1, :, 9:] = torch.nan  # padding, whatever it holds
    wider = torch.full((LAYERS, 3, HEADS, 80, 2 * HEAD_DIM), torch.nan).half()
    wider[:, 1, :, 3:68] = normal(LAYERS, HEADS, 65, 2 * HEAD_DIM, seed=3)
    batch.memory = wider[:, 1:, :, 3:73]
    found = batch.read(
        torch.cat([normal(1, 3, DIM, seed=2), x]), torch.tensor([[65], [0]])
    )
    assert torch.equal(found[1:], together)
    assert torch.equal(batch.memory[:, 1:, :, :3], block.memory[:, :, :, :3])
    for around in (
        wider[:, 0],
        wider[..., :3, :],
        wider[:, 1, :, 71:],
        wider[:, 2, :, 6:],
    ):
        assert bool(around.isnan().all())

    tree = Rows(model, [5])
    tree.read(x[:, :2], start)
    paths = torch.tensor([[[0, 1, 9], [0, 1, 5]]])
    leaves = tree.read(x[:, [2, 2]], torch.full((1, 2), 2), paths=paths)
    assert torch.equal(leaves, together[:, [2, 2]])


@torch.no_grad()
def test_tokens_behind_the_capacity_are_not_written() -> None:
    rows = Rows(network(), [9, 5])
    rows.memory[:] = 0
    rows.read(normal(2, 3, DIM), torch.tensor([[62], [0]]))
    assert bool((rows.memory[:, 0, :, 62:] != 0).any(-1).all())
    assert bool((rows.memory[:, 0, :, :62] == 0).all())
    assert bool((rows.memory[:, 1, :, 3:] == 0).all())


def test_models_that_the_kernels_cannot_compute_are_refused_by_name() -> None:
    def why(model: Any) -> str:
        with pytest.raises(ValueError, match=r".") as found:
            TritonDecoderLayers(model.decoder)
        return str(found.value)

    assert "softplus" in why(with_activation(network().half(), nn.functional.softplus))
    assert "heads of 8 elements" in why(network(dim=32, heads=4).half())
    assert "layers of 16 elements and 40 inside" in why(
        network(dim=16, inner=40, heads=1).half()
    )
    assert "layers of 2048 elements, above 1024" in why(
        network(dim=2048, heads=16, layers=1).half()
    )
    uneven = network().half()
    uneven.decoder.layers[1].fc1 = nn.Linear(DIM, 64).half()
    assert "several sizes" in why(uneven)


def with_activation(model: Any, activation: Any) -> Any:
    for layer in model.decoder.layers:
        layer.activation_fn = activation
    return model
