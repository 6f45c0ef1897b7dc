"""Ordinary drafters of large vocabularies look at the first symbols, and at those that the verifier has written."""

from typing import Any
from unittest import mock

import pytest
import torch

from fairseq_aggdec.engine import shortlist
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.scheduling.costs import KERNELS, DraftCost
from tests.support.random_models import dictionary, random_batch, random_model

WORDS = dictionary(300)
FIRST = 40


@pytest.fixture(autouse=True)
def small_numbers() -> Any:
    with mock.patch.multiple(shortlist, LARGE=100, FIRST=FIRST):
        yield


def drafts(drafter: LoadedDrafter, texts: list[list[int]]) -> list[list[int]]:
    """The drafts for a new batch."""
    return (
        drafter.start(random_batch(3, WORDS, [5, 9, 2])["net_input"], torch.float32)
        .draft(texts, 6)
        .tolist()
    )


@torch.no_grad()
def test_drafts_are_as_of_the_whole_vocabulary_once_the_verifier_has_written_them() -> (
    None
):
    model = random_model(4, WORDS)
    drafter = LoadedDrafter(model)
    texts = [[WORDS.eos(), 150, 7], [WORDS.eos()], [WORDS.eos(), 20]]
    with mock.patch.object(shortlist, "LARGE", 1000):
        whole = drafts(LoadedDrafter(model), texts)
    first = drafts(drafter, texts)
    missing = {token for draft in whole for token in draft if token >= FIRST} - {150}
    assert missing, "else the test shows nothing"
    assert all(token < FIRST or token == 150 for draft in first for token in draft)
    written = [*missing, *range(260, 285)]  # so many that the list is renewed
    drafts(drafter, [[WORDS.eos(), *written[row::3]] for row in range(3)])
    assert drafts(drafter, texts) == whole


def test_the_schedule_knows_that_such_drafts_cost_less() -> None:
    decoder = random_model(4, WORDS).decoder
    numbers = (shortlist.shortlisted(decoder), None)
    cost, whole = (
        DraftCost.of(decoder, 4, [decoder], KERNELS, steps=True, symbols=number)
        for number in numbers
    )
    assert cost.token < whole.token
