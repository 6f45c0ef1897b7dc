"""The kernels around a decoder's layers against the search rules and PyTorch's operations."""

import math
from unittest.mock import MagicMock

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import Places, SearchRules
from fairseq_aggdec.engine.cuda import choice
from fairseq_aggdec.engine.cuda.choice import best_entries, chosen, embedded, projected
from fairseq_aggdec.engine.plain.choice import PLAIN, ranked

PAD, EOS, MIN_LEN, MAX_LEN = 1, 2, 3, 7
LIMITS = torch.tensor([PAD, EOS, MIN_LEN, MAX_LEN])
RULES = SearchRules(pad=PAD, unk=3, eos=EOS, max_len=MAX_LEN, min_len=MIN_LEN)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def whole(*shape: int, end: int, first: int = 0) -> Tensor:
    return torch.randint(
        first, end, shape, generator=torch.Generator().manual_seed(len(shape) + end)
    )


def logits_of(rows: int, symbols: int, dtype: torch.dtype, step: float = 0.0) -> Tensor:
    """Random logits, EOS often among the best; `step`: they are multiples of it, and many are equal."""
    logits = 3 * normal(rows, symbols)
    logits[::2, EOS] += 9
    return (logits if step == 0 else (logits / step).round() * step).to(dtype)


def scores_of(
    logits: Tensor, positions: Tensor, temperature: float = 1.0, last: int = 0
) -> Tensor:
    """All log-probabilities, N x V, minus infinity where a rule bans the token; `last`: EOS is forced up to here."""
    return ranked(PLAIN, RULES, logits / temperature, Places(positions, 0, last), 1)[2][
        :
    ]


def assert_chosen(
    logits: Tensor, positions: Tensor, proposed: Tensor, temperature: float = 1.0
) -> None:
    scores, rows = scores_of(logits, positions, temperature), torch.arange(len(logits))
    tokens, log_probs, forced, drafted, ranks = chosen(
        logits, positions, LIMITS, proposed, temperature
    ).unbind(1)
    expected = torch.from_numpy(scores.numpy().argmax(1))  # of equal scores the first
    expected[positions >= MAX_LEN] = EOS
    assert tokens.tolist() == expected.tolist()
    assert forced.tolist() == (positions >= MAX_LEN).tolist()
    torch.testing.assert_close(log_probs, scores[rows, expected], rtol=1e-6, atol=1e-6)
    of_draft = scores[rows, proposed.clamp(min=0)].masked_fill(proposed < 0, -math.inf)
    torch.testing.assert_close(drafted, of_draft, rtol=1e-6, atol=1e-6)
    assert ranks.tolist() == (scores > of_draft[:, None]).sum(1).tolist()


@pytest.mark.parametrize(
    ("dtype", "rows", "symbols", "step"),
    [
        (torch.float16, 1, 5, 0.0),
        (torch.float16, 17, 70, 0.5),
        (torch.float16, 3, 300, 1.0),
        (torch.bfloat16, 9, 70, 0.5),
        (torch.float32, 3, 64, 0.0),
    ],
)
def test_a_choice_is_that_of_the_search_rules(
    dtype: torch.dtype, rows: int, symbols: int, step: float
) -> None:
    """With ties, bans, an early and a forced EOS, and draft tokens among which some are banned or none."""
    positions, proposed = (
        whole(rows, end=MAX_LEN + 2),
        whole(rows, end=symbols, first=-1),
    )
    proposed[::4] = EOS
    assert_chosen(logits_of(rows, symbols, dtype, step), positions, proposed)


@pytest.mark.parametrize("temperature", [0.5, 4.0])
def test_a_temperature_divides_the_logits_in_their_own_type(temperature: float) -> None:
    logits, positions = logits_of(3, 100, torch.float16), torch.arange(2, 5)
    assert_chosen(logits, positions, whole(3, end=100), temperature)
    values, names = best_entries(logits, positions, LIMITS, 3, temperature)
    torch.testing.assert_close(
        values, scores_of(logits, positions, temperature).gather(1, names)
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_what_is_impossible_has_minus_infinity(dtype: torch.dtype) -> None:
    """Whole chunks, all but one token, or a forced EOS; a draft token of that kind has every possible one above it."""
    logits, positions = (
        torch.full((3, 140), -math.inf, dtype=dtype),
        torch.tensor([4, 0, 8]),
    )
    logits[0, 137] = logits[2, 40] = 3.0
    logits[1, [EOS, 70, 80]] = torch.tensor([1.0, 0.5, 0.5], dtype=dtype)
    assert_chosen(logits, positions, torch.tensor([5, EOS, 40]))


@pytest.mark.parametrize("bad", [math.nan, -math.nan, math.inf])
def test_a_row_with_nan_shows_it_and_no_other_row_does(bad: float) -> None:
    logits, positions = logits_of(4, 150, torch.float16), torch.tensor([0, 4, 9, 5])
    logits[0, 140] = logits[1, PAD] = bad
    logits[3] = bad
    found, (values, names) = (
        chosen(logits, positions, LIMITS),
        best_entries(logits, positions, LIMITS, 3),
    )
    assert (
        found[:, 1].isnan().tolist()
        == values[:, 0].isnan().tolist()
        == [True, True, False, True]
    )
    assert 0 <= names.min() <= names.max() < 150
    assert 0 <= found[:, 0].min() <= found[:, 0].max() < 150


@pytest.mark.parametrize(
    ("count", "dtype", "step"),
    [(1, torch.float16, 1.0), (7, torch.bfloat16, 1.0), (22, torch.float32, 0.0)],
)
def test_best_entries_are_those_of_the_search_rules(
    count: int, dtype: torch.dtype, step: float
) -> None:
    """Equal ones in the order of their tokens; where EOS is forced, it is the only one that is possible."""
    logits, positions = logits_of(3, 140, dtype, step), torch.tensor([0, 4, MAX_LEN])
    logits[0].clamp_(max=-1.0)
    logits[0, 10:80], logits[0, 10:80:2] = 0.0, -0.0  # equal
    values, names = best_entries(logits, positions, LIMITS, count)
    expected, order = scores_of(logits, positions, last=MAX_LEN).sort(
        dim=1, descending=True, stable=True
    )
    torch.testing.assert_close(values, expected[:, :count], rtol=1e-6, atol=1e-6)
    assert names.tolist() == order[:, :count].tolist()


def test_a_row_is_chosen_with_the_same_bits_among_any_others() -> None:
    logits, positions, proposed = (
        logits_of(17, 140, torch.float16),
        whole(17, end=9),
        whole(17, end=140),
    )
    together = chosen(logits, positions, LIMITS, proposed)
    for first, last in ((0, 1), (5, 7), (9, 17)):
        part = slice(first, last)
        assert torch.equal(
            chosen(logits[part], positions[part], LIMITS, proposed[part]),
            together[part],
        )


def test_a_pass_may_have_any_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a grid's dimensions, CUDA allows only the first more than 65,535 programs."""
    launch = MagicMock()
    monkeypatch.setattr(choice, "read_chunk", launch)
    chosen(logits_of(5, 130, torch.float16), torch.arange(5), LIMITS)
    launch.__getitem__.assert_called_once_with((5, 3))


@pytest.mark.parametrize(("symbols", "dim"), [(70, 96), (40, 768), (17, 1024)])
def test_logits_are_those_of_pytorch(symbols: int, dim: int) -> None:
    weight = (normal(symbols, dim, seed=1) / math.sqrt(dim)).half()
    for rows, bias in ((1, normal(symbols, seed=2).half()), (33, None)):
        features = normal(rows, dim).half()
        exact = torch.nn.functional.linear(
            features.double(), weight.double(), None if bias is None else bias.double()
        )
        found = projected(features, weight, bias)
        torch.testing.assert_close(found.double(), exact, rtol=2**-11, atol=1e-5)


@pytest.mark.usefixtures("products_as_on_tensor_cores")
def test_a_rows_logits_have_the_same_bits_among_any_others() -> None:
    """Alone, in a block and in a batch, wherever the row stands."""
    features, weight = normal(33, 512).half(), (normal(40, 512, seed=1) / 20).half()
    together = projected(features, weight, None)
    for rows in (1, 2, 7, 15, 16, 17, 32):
        assert torch.equal(
            projected(features[33 - rows :], weight, None), together[33 - rows :]
        )


# the interpreter does not round bfloat16, it cuts
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_embeddings_are_those_of_pytorch_to_the_last_bit(dtype: torch.dtype) -> None:
    words, places, further = (
        normal(size, 48, seed=size).to(dtype) for size in (30, 9, 2)
    )
    tokens, positions, scale = (
        torch.tensor([0, 29, 30, 31, 7, 7]),
        torch.tensor([0, 8, 3, 9, 100, 2]),
        math.sqrt(48),
    )
    scaled = torch.cat([scale * words, further])[tokens]
    assert torch.equal(embedded(tokens, positions, words, scale, None, further), scaled)
    with_places = scaled + places[positions.clamp(max=8)]
    assert torch.equal(
        embedded(tokens, positions, words, scale, places, further), with_places
    )
    assert torch.equal(
        embedded(tokens[:2], positions[:2], words, scale, places, None), with_places[:2]
    )


def test_a_token_without_embedding_becomes_nan() -> None:
    words, positions = normal(5, 16).half(), torch.zeros(3, dtype=torch.long)
    for further in (None, normal(2, 16).half()):
        missing = torch.tensor([-1, 4, 5 if further is None else 7])
        found = embedded(missing, positions, words, 1.0, None, further)
        assert found.isnan().all(dim=1).tolist() == [True, False, True]
