"""The kernels themselves: products for each set of vector instructions, and what happens where they are missing."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import Bans
from fairseq_aggdec.engine.encoder import Encoder
from fairseq_aggdec.engine.native import library
from fairseq_aggdec.engine.native.choice import best_entries, likeliest
from fairseq_aggdec.engine.native.layers import Embedding
from fairseq_aggdec.engine.native.library import Kernels, kernels
from fairseq_aggdec.engine.native.products import PackedProduct
from fairseq_aggdec.engine.plain.choice import LogProbs
from fairseq_aggdec.engine.plain.products import Activation
from tests.support.random_models import dictionary, normal, random_batch, random_model

FOLDER = Path(library.__file__).parent
WORDS = dictionary(30)
NAMES = {"AVX2": ["avx2"], "AVX512": ["avx2", "avx512"]}.get(
    torch.backends.cpu.get_cpu_capability(), []
)
SIZES = [
    (1, 1),
    (37, 21),
    (64, 512),
    (100, 513),
    (31, 1100),
]  # outputs, inputs


@pytest.fixture(params=NAMES)
def found(request: pytest.FixtureRequest) -> Kernels:
    """The kernels for a set of vector instructions."""
    return Kernels(FOLDER / f"kernels_{request.param}.so")


@pytest.fixture
def anew() -> Iterator[None]:
    """The kernels are looked for again, here and afterwards."""
    kernels.cache_clear()
    yield
    kernels.cache_clear()


def layer(
    outputs: int,
    inputs: int,
) -> tuple[Tensor, Tensor]:
    seed = outputs + inputs
    return normal(outputs, inputs, seed=seed) / inputs**0.5, normal(outputs, seed=seed)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("activation", [None, F.relu, F.silu])
def test_a_product_is_pytorchs(
    found: Kernels,
    size: tuple[int, int],
    activation: Activation | None,
) -> None:
    weight, bias = layer(*size)
    x = normal(3, 11, size[1])
    for own in (bias, None):
        expected = F.linear(
            x.double(), weight.double(), None if own is None else own.double()
        )
        expected = activation(expected) if activation else expected
        product = PackedProduct(found, weight, own, activation)(x).double()
        torch.testing.assert_close(product, expected, atol=4e-6, rtol=2e-6)


@pytest.mark.parametrize(
    "quantised", [False, pytest.param(True, marks=pytest.mark.int8)]
)
@pytest.mark.parametrize("size", SIZES)
def test_a_row_has_the_same_bits_among_any_others(
    found: Kernels,
    quantised: bool,
    size: tuple[int, int],
) -> None:
    """With any number of rows and threads, wherever it stands."""
    if quantised and not found.quantises:
        return  # AVX2 has no such products
    product = PackedProduct(found, *layer(*size), None, quantised)
    x = normal(40, size[1])
    expected = product(x)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            for rows in range(1, 40):
                assert torch.equal(product(x[40 - rows :]), expected[40 - rows :])
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("trained_in", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", SIZES)
def test_weights_are_the_same_numbers_in_16_bits(
    found: Kernels,
    trained_in: torch.dtype,
    size: tuple[int, int],
) -> None:
    """The same bits come out; subnormal numbers and signed zeros are weights, too."""
    weight, bias = layer(*size)
    smallest = 2.0**-24 if trained_in is torch.float16 else 2.0**-130
    weight.view(-1)[0] = -0.0
    weight.view(-1)[-1] = smallest
    weight = weight.to(trained_in).float()
    assert weight.view(-1)[-1] == smallest
    x = normal(13, size[1]) * 2.0**20
    for own in (bias, None):
        wide = PackedProduct(found, weight, own)
        narrow = PackedProduct(found, weight, own, together=10**9)
        assert (wide.as_c.kept, narrow.as_c.kept) == (
            0,
            1 if trained_in is torch.float16 else 2,
        )
        for product in (wide, narrow):
            assert getattr(product._alive[1], "dtype", None) == torch.float32, (
                "as kernels.c reads them"
            )
        for rows in range(1, 14):
            assert torch.equal(wide(x[:rows]), narrow(x[:rows]))


@pytest.mark.parametrize("other", [1 + 2.0**-12, 2.0**100])
def test_weights_that_16_bits_cannot_hold_stay_as_they_are(
    found: Kernels,
    other: float,
) -> None:
    """The first weight is too fine for bfloat16, the other one too fine or too large for fp16."""
    weight = torch.tensor([[1 + 2.0**-9, other]])
    product = PackedProduct(found, weight, None, together=10**9)
    assert product.as_c.kept == 0
    assert torch.equal(product(torch.eye(2))[:, 0], weight[0])


@pytest.mark.int8
@pytest.mark.parametrize("size", SIZES)
def test_a_product_of_integers_is_that_of_the_rounded_numbers(
    found: Kernels,
    size: tuple[int, int],
) -> None:
    if not found.quantises:
        return  # AVX2 has no such products
    weight, bias = layer(*size)
    x = normal(7, size[1])
    x[3] = 0.0
    steps = x.abs().amax(dim=-1, keepdim=True) / 127
    widths = weight.abs().amax(dim=-1, keepdim=True) / 127
    levels = (x / steps.clamp(min=1e-30)).round().double()
    sizes = (weight / widths).round().double()
    expected = (
        ((levels @ sizes.T) * steps.double() * widths.double().T + bias).relu().float()
    )
    torch.testing.assert_close(
        PackedProduct(found, weight, bias, F.relu, True)(x),
        expected,
        atol=1e-3,
        rtol=1e-3,
    )


def scores_of(
    rows: int,
    width: int,
) -> Tensor:
    """Many are equal, and a third is minus infinity."""
    scores = normal(rows, width, seed=width).mul(5).round()
    return scores.masked_fill(normal(rows, width) < -0.5, -torch.inf)


@pytest.mark.parametrize("width", [1, 3, 63, 64, 65, 500, 4001])
def test_the_best_entries_of_rows(
    found: Kernels,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal ones in their order; what is banned last, and what is no number as if it were."""
    monkeypatch.setattr(library, "kernels", lambda: found)
    for rows in (1, 2, 40):
        scores = scores_of(rows, width)
        scores[0, width // 2] = torch.nan
        ordered, places = scores.nan_to_num(-torch.inf, neginf=-torch.inf).sort(
            dim=1, descending=True, stable=True
        )
        for count in {1, min(width, 7), min(width, 16)}:
            values, tokens = best_entries(scores, count)
            assert torch.equal(values, ordered[:, :count])
            assert torch.equal(tokens, places[:, :count])


@pytest.mark.parametrize("width", [3, 64, 65, 500, 4001])
def test_the_likeliest_of_rows(
    found: Kernels,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With one token banned, and another in some rows; a score is what the whole row has there, to the bit."""
    monkeypatch.setattr(library, "kernels", lambda: found)
    for rows in (1, 2, 40):
        logits = scores_of(rows, width)
        logits[:, :3] = torch.tensor([1.0, 30.0, 31.0])
        early = normal(rows, seed=width) < 0.0
        for bans in (Bans(1), Bans(1, 2, early)):
            expected = logits.double().log_softmax(dim=1)
            expected[:, 1] = -torch.inf
            if bans.early is not None:
                expected[early, 2] = -torch.inf
            ordered, places = expected.sort(dim=1, descending=True, stable=True)
            for count in {1, min(width, 7)}:
                values, tokens, whole = likeliest(logits.clone(), count, bans)
                assert torch.equal(tokens, places[:, :count])
                torch.testing.assert_close(
                    values.double(), ordered[:, :count], atol=1e-5, rtol=1e-6
                )
                assert torch.equal(values, whole[:].gather(1, tokens))
                assert torch.equal(values[-1], whole[rows - 1][tokens[-1]])
                assert isinstance(whole, LogProbs)
                for each in (tokens[:, -1:], torch.tensor([[1, 2]]).expand(rows, 2)):
                    assert torch.equal(whole.gather(1, each), whole[:].gather(1, each))


def test_a_token_that_is_no_symbol_is_an_error(found: Kernels) -> None:
    """A drafter has one more, its mask."""
    for mask, last in ((None, 8), (normal(1, 40), 9)):
        read = Embedding(found, normal(9, 40), 6.5, None, mask)
        assert read(torch.tensor([[last, 0]]), range(2), 2).isfinite().all()
        with pytest.raises(IndexError, match="a token is not one of the"):
            read(torch.tensor([[last + 1, 0]]), range(2), 2)


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize(
    "broken, reason",
    [
        ("missing", "they were not compiled"),
        ("other source", "they were compiled from other sources"),
        ("no library", "file too short|invalid ELF header"),
    ],
)
def test_without_them_decoding_goes_on_and_says_so_once(
    broken: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    shutil.copytree(FOLDER, tmp_path / "native")
    for path in (tmp_path / "native").glob("*.so"):
        if broken == "missing":
            path.unlink()
        elif broken == "no library":
            path.write_bytes(b"not one")
    if broken == "other source":
        with (tmp_path / "native" / "beams.c").open("a") as file:
            file.write("/* and more */\n")
    monkeypatch.setattr(library, "_FOLDER", tmp_path / "native")
    assert kernels() is None
    assert kernels() is None
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert re.search(reason, record.message)
    assert "build_ext --inplace" in record.message


@pytest.mark.usefixtures("anew")
def test_they_can_be_left_out(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("AGGDEC_KERNELS", "0")
    assert kernels() is None
    assert not caplog.records


def test_layers_keep_their_weights_alive() -> None:
    """The model that they were read from may be gone."""
    encoder = random_model(1, WORDS).encoder
    tokens = random_batch(1, WORDS, [5, 9])["net_input"]["src_tokens"]
    engine = Encoder(encoder)
    before = engine(tokens)["encoder_out"][0].clone()
    with torch.no_grad():
        for layer in encoder.layers:
            for weight in layer.parameters():
                weight.fill_(9.0)
    assert torch.equal(engine(tokens)["encoder_out"][0], before)
