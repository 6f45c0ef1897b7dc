"""The loss of corrections, weighted, against a slow transcription."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.logging import metrics

from fairseq_aggdec.criterions.edit_weighted_loss import (
    EditWeightedLoss,
    EditWeightedLossConfig,
    edits,
)
from tests.criterions.pairs import random_pairs
from tests.support.random_models import dictionary, random_model

WORDS = dictionary(12)
PAD, EOS = WORDS.pad(), WORDS.eos()


def criterion(sentence_avg: bool = False) -> EditWeightedLoss:
    task = SimpleNamespace(source_dictionary=WORDS, target_dictionary=WORDS)
    return EditWeightedLoss(EditWeightedLossConfig(sentence_avg=sentence_avg), task)


def sample() -> dict[str, Any]:
    return random_pairs([7, 1, 12], WORDS, torch.Generator().manual_seed(2))


def test_what_is_edited() -> None:
    """A token is a copy behind the same token only; so what follows an edit counts as one, too."""
    # fairseq pads sources on the left
    source = torch.tensor([[PAD, PAD, 5, 6, 7, EOS], [5, 6, 6, 7, 8, EOS]])
    target = torch.tensor([[5, 6, 7, EOS, PAD], [5, 6, 9, 8, EOS]])
    assert edits(source, target, PAD).tolist() == [
        [False] * 5,
        [False, False, True, True, False],
    ]
    assert edits(source, source.roll(-2, dims=1), PAD)[0].tolist() == [False] * 6
    assert edits(
        torch.tensor([[6, EOS]]), torch.tensor([[5, 6, EOS]]), PAD
    ).tolist() == [[True, True, False]]


@torch.no_grad()
def test_the_loss_is_the_weighted_mean() -> None:
    net, batch = random_model(1, WORDS, WORDS).eval(), sample()
    log_probs = net(**batch["net_input"])[0].log_softmax(-1)
    edited = edits(batch["net_input"]["src_tokens"], batch["target"], PAD)
    expected = plain = weight = 0.0
    for row, tokens in enumerate(batch["target"].tolist()):
        for place, token in enumerate(tokens):
            if token != PAD:
                wanted = torch.full((len(WORDS),), 0.1 / (len(WORDS) - 1))
                wanted[token] = 0.9
                own = 3.0 if edited[row, place] else 1.0
                expected -= own * float(wanted @ log_probs[row, place])
                plain -= float(log_probs[row, place, token])
                weight += own
    loss, size, log = criterion()(net, batch)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert float(size) == weight > int(batch["target"].ne(PAD).sum())
    assert float(log["nll_loss"]) == pytest.approx(plain, rel=1e-5)
    assert criterion(sentence_avg=True)(net, batch)[1] == 3
    with metrics.aggregate() as logged:
        EditWeightedLoss.reduce_metrics([log])
        scores = logged.get_smoothed_values()
    of_edits = -log_probs.gather(2, batch["target"][..., None])[..., 0][
        edited
    ].mean() / math.log(2)
    assert scores["edit_nll_loss"] == pytest.approx(float(of_edits), abs=1e-3)
