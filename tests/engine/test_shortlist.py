"""Drafters of large vocabularies look at the first symbols, and at those that the verifier has written."""

from typing import Any
from unittest import mock

import pytest
import torch

from fairseq_aggdec.engine import draft_decoder, shortlist
from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.engines import LoadedDrafter
from fairseq_aggdec.scheduling.costs import KERNELS, DraftCost
from tests.random_drafters import random_drafter
from tests.random_models import dictionary, random_batch, random_model

WORDS = dictionary(300)
FIRST = 40
LENGTHS = [5, 9, 2]


@pytest.fixture(autouse=True)
def small_numbers() -> Any:
    with mock.patch.multiple(shortlist, LARGE=100, FIRST=FIRST), mock.patch.object(draft_decoder, "_CANDIDATES", 400):
        yield


def drafts(drafter: LoadedDrafter, is_judged: bool, texts: list[list[int]]) -> list[list[int]]:
    """The drafts for a new batch."""
    arithmetic = Arithmetic(is_judged=is_judged)
    model = drafter.start(random_batch(3, WORDS, LENGTHS)["net_input"], torch.float32, arithmetic=arithmetic)
    return model.draft(texts, 6).tolist()


@pytest.mark.parametrize("transition_dim", [None, 0, 8], ids=["ordinary", "block drafter", "with a transition head"])
@torch.no_grad()
def test_drafts_are_as_of_the_whole_vocabulary_once_the_verifier_has_written_them(transition_dim: int | None) -> None:
    model: Any = random_model(4, WORDS, WORDS)
    if transition_dim is not None:
        shape = "causal, pre-norm sinusoidal"
        model = random_drafter(shape, 4, WORDS, WORDS, 8, transition_dim=transition_dim)
    drafter = LoadedDrafter(model)
    texts = [[WORDS.eos(), 150, 7], [WORDS.eos()], [WORDS.eos(), 20]]
    whole, first = drafts(drafter, False, texts), drafts(drafter, True, texts)
    missing = {token for draft in whole for token in draft if token >= FIRST} - {150}
    assert missing, "else the test shows nothing"
    assert all(token < FIRST or token == 150 for draft in first for token in draft)
    written = [*missing, *range(260, 285)]  # so many that the list is renewed
    drafts(drafter, True, [[WORDS.eos(), *written[row::3]] for row in range(3)])
    assert drafts(drafter, True, texts) == whole


def test_the_schedule_knows_that_such_drafts_cost_less() -> None:
    decoder = random_model(4, WORDS, WORDS).decoder
    few = shortlist.shortlisted(decoder, Arithmetic(is_judged=True))
    assert (few, shortlist.shortlisted(decoder, Arithmetic())) == (FIRST, None)
    cost, whole = (DraftCost.of(decoder, 4, [decoder], KERNELS, steps=True, symbols=number) for number in (few, None))
    assert cost.token < whole.token
