"""The kernels around a decoder's layers against the search rules and PyTorch's operations."""

import math
from functools import partial
from unittest.mock import MagicMock

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import Places, SearchRules
from fairseq_aggdec.engine.cuda import choice
from fairseq_aggdec.engine.cuda.choice import best_entries, chosen, embedded, projected
from fairseq_aggdec.engine.plain.choice import PLAIN, ranked
from tests.support.random_models import normal

PAD = 1
EOS = 2
MIN_LEN = 3
MAX_LEN = 7
LIMITS = torch.tensor([PAD, EOS, MIN_LEN, MAX_LEN])
RULES = SearchRules(
    pad=PAD,
    unk=3,
    eos=EOS,
    max_len=MAX_LEN,
    min_len=MIN_LEN,
)
close = partial(torch.testing.assert_close, rtol=1e-6, atol=1e-6)


def whole(
    *shape: int,
    end: int,
    first: int = 0,
) -> Tensor:
    draw = torch.Generator().manual_seed(len(shape) + end)
    return torch.randint(first, end, shape, generator=draw)


def logits_of(
    rows: int,
    symbols: int,
    dtype: torch.dtype,
    step: float = 0.0,
) -> Tensor:
    """Random logits, EOS often among the best; `step`: they are multiples of it, and many are equal."""
    logits = 3 * normal(rows, symbols)
    logits[::2, EOS] += 9
    if step > 0:
        logits = (logits / step).round() * step
    return logits.to(dtype)


def scores_of(
    logits: Tensor, positions: Tensor, temperature: float = 1.0, last: int = 0
) -> Tensor:
    """All log-probabilities, N x V, minus infinity where a rule bans the token; `last`: EOS is forced up to here."""
    places = Places(positions, 0, last)
    _, _, scores = ranked(PLAIN, RULES, logits / temperature, places, 1)
    return scores[:]


def assert_chosen(
    logits: Tensor, positions: Tensor, proposed: Tensor, temperature: float = 1.0
) -> None:
    scores = scores_of(logits, positions, temperature)
    rows = torch.arange(len(logits))
    found = chosen(logits, positions, LIMITS, proposed, temperature)
    tokens, log_probs, forced, drafted, ranks = found.unbind(1)
    expected = torch.from_numpy(scores.numpy().argmax(1))  # of equal scores the first
    expected[positions >= MAX_LEN] = EOS
    assert tokens.tolist() == expected.tolist()
    assert forced.tolist() == (positions >= MAX_LEN).tolist()
    close(log_probs, scores[rows, expected])
    # a draft token that is none has no score
    of_draft = scores[rows, proposed.clamp(min=0)]
    of_draft = of_draft.masked_fill(proposed < 0, -math.inf)
    close(drafted, of_draft)
    assert ranks.tolist() == (scores > of_draft[:, None]).sum(1).tolist()


@pytest.mark.parametrize(
    "dtype, rows, symbols, step",
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
    positions = whole(rows, end=MAX_LEN + 2)
    proposed = whole(rows, end=symbols, first=-1)
    proposed[::4] = EOS
    assert_chosen(logits_of(rows, symbols, dtype, step), positions, proposed)


@pytest.mark.parametrize("temperature", [0.5, 4.0])
def test_a_temperature_divides_the_logits_in_their_own_type(temperature: float) -> None:
    logits = logits_of(3, 100, torch.float16)
    positions = torch.arange(2, 5)
    assert_chosen(logits, positions, whole(3, end=100), temperature)
    values, names = best_entries(logits, positions, LIMITS, 3, temperature)
    close(values, scores_of(logits, positions, temperature).gather(1, names))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_what_is_impossible_has_minus_infinity(dtype: torch.dtype) -> None:
    """Whole chunks, all but one token, or a forced EOS; a draft token of that kind has every possible one above it."""
    positions = torch.tensor([4, 0, 8])
    logits = torch.full(
        (3, 140),
        -math.inf,
        dtype=dtype,
    )
    logits[0, 137] = 3.0
    logits[2, 40] = 3.0
    logits[1, [EOS, 70, 80]] = torch.tensor([1.0, 0.5, 0.5], dtype=dtype)
    assert_chosen(logits, positions, torch.tensor([5, EOS, 40]))


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        -math.nan,
        math.inf,
    ],
)
def test_a_row_with_nan_shows_it_and_no_other_row_does(bad: float) -> None:
    positions = torch.tensor([0, 4, 9, 5])
    logits = logits_of(4, 150, torch.float16)
    logits[0, 140] = bad
    logits[1, PAD] = bad
    logits[3] = bad
    found = chosen(logits, positions, LIMITS)
    values, names = best_entries(logits, positions, LIMITS, 3)
    for scores in (found[:, 1], values[:, 0]):
        assert scores.isnan().tolist() == [True, True, False, True]
    for tokens in (names, found[:, 0]):
        assert 0 <= tokens.min() <= tokens.max() < 150


@pytest.mark.parametrize(
    "count, dtype, step",
    [
        (1, torch.float16, 1.0),
        (7, torch.bfloat16, 1.0),
        (22, torch.float32, 0.0),
    ],
)
def test_best_entries_are_those_of_the_search_rules(
    count: int, dtype: torch.dtype, step: float
) -> None:
    """Equal ones in the order of their tokens; where EOS is forced, it is the only one that is possible."""
    positions = torch.tensor([0, 4, MAX_LEN])
    logits = logits_of(3, 140, dtype, step)
    logits[0].clamp_(max=-1.0)
    logits[0, 10:80] = 0.0
    logits[0, 10:80:2] = -0.0  # equal
    values, names = best_entries(logits, positions, LIMITS, count)
    scores = scores_of(logits, positions, last=MAX_LEN)
    expected, order = scores.sort(dim=1, descending=True, stable=True)
    close(values, expected[:, :count])
    assert names.tolist() == order[:, :count].tolist()


def test_a_row_is_chosen_with_the_same_bits_among_any_others() -> None:
    logits = logits_of(17, 140, torch.float16)
    positions = whole(17, end=9)
    proposed = whole(17, end=140)
    together = chosen(logits, positions, LIMITS, proposed)
    for part in (
        slice(1),
        slice(5, 7),
        slice(9, 17),
    ):
        alone = chosen(
            logits[part],
            positions[part],
            LIMITS,
            proposed[part],
        )
        assert torch.equal(alone, together[part])


def test_a_pass_may_have_any_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a grid's dimensions, CUDA allows only the first more than 65,535 programs."""
    launch = MagicMock()
    monkeypatch.setattr(choice, "read_chunk", launch)
    chosen(
        logits_of(5, 130, torch.float16),
        torch.arange(5),
        LIMITS,
    )
    launch.__getitem__.assert_called_once_with((5, 3))


@pytest.mark.parametrize(
    "symbols, dim",
    [
        (70, 96),
        (40, 768),
        (17, 1024),
    ],
)
def test_logits_are_those_of_pytorch(symbols: int, dim: int) -> None:
    weight = (normal(symbols, dim, seed=1) / math.sqrt(dim)).half()
    for rows, bias in ((1, normal(symbols, seed=2).half()), (33, None)):
        features = normal(rows, dim).half()
        exact = features.double() @ weight.double().T
        if bias is not None:
            exact += bias.double()
        found = projected(features, weight, bias).double()
        torch.testing.assert_close(
            found,
            exact,
            rtol=2**-11,
            atol=1e-5,
        )


@pytest.mark.usefixtures("products_as_on_tensor_cores")
def test_a_rows_logits_have_the_same_bits_among_any_others() -> None:
    """Alone, in a block and in a batch, wherever the row stands."""
    features = normal(33, 512).half()
    weight = (normal(40, 512, seed=1) / 20).half()
    together = projected(features, weight, None)
    for rows in (1, 2, 7, 15, 16, 17, 32):
        found = projected(features[-rows:], weight, None)
        assert torch.equal(found, together[-rows:])


# the interpreter does not round bfloat16, it cuts
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_embeddings_are_those_of_pytorch_to_the_last_bit(dtype: torch.dtype) -> None:
    words, places, further = (
        normal(size, 48, seed=size).to(dtype) for size in (30, 9, 2)
    )
    tokens = torch.tensor([0, 29, 30, 31, 7, 7])
    positions = torch.tensor([0, 8, 3, 9, 100, 2])
    scale = math.sqrt(48)
    scaled = torch.cat([scale * words, further])[tokens]
    found = embedded(tokens, positions, words, scale, None, further)
    assert torch.equal(found, scaled)
    with_places = scaled + places[positions.clamp(max=8)]
    found = embedded(tokens, positions, words, scale, places, further)
    assert torch.equal(found, with_places)
    found = embedded(
        tokens[:2],
        positions[:2],
        words,
        scale,
        places,
        None,
    )
    assert torch.equal(found, with_places[:2])


def test_a_token_without_embedding_becomes_nan() -> None:
    words = normal(5, 16).half()
    positions = torch.zeros(3, dtype=torch.long)
    for further in (None, normal(2, 16).half()):
        missing = torch.tensor([-1, 4, 5 if further is None else 7])
        found = embedded(missing, positions, words, 1.0, None, further)
        assert found.isnan().all(dim=1).tolist() == [True, False, True]
