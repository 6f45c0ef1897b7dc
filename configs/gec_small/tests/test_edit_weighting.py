"""The loss of corrections, weighted, against a slow transcription."""

import math
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.logging import metrics
from fairseq.utils import import_user_module

from tests.criterions.pairs import random_pairs
from tests.support.random_models import dictionary, random_model

import_user_module(Namespace(user_dir=str(Path(__file__).parents[1] / "user_dir")))
module = sys.modules["user_dir"]
WORDS = dictionary(12)
PAD = WORDS.pad()
EOS = WORDS.eos()


def test_what_is_edited() -> None:
    """A token is a copy after the same token only; so what follows an edit counts as one, too."""
    # fairseq pads sources on the left
    source = torch.tensor([[PAD, PAD, 5, 6, 7, EOS], [5, 6, 6, 7, 8, EOS]])
    target = torch.tensor([[5, 6, 7, EOS, PAD], [5, 6, 9, 8, EOS]])
    edited = module.edits(source, target, PAD)
    assert edited.nonzero().tolist() == [[1, 2], [1, 3]]
    added = module.edits(torch.tensor([[6, EOS]]), torch.tensor([[5, 6, EOS]]), PAD)
    assert added.tolist() == [[True, True, False]]


@torch.no_grad()
def test_the_loss_is_the_weighted_mean() -> None:
    net = random_model(1, WORDS).eval()
    batch = random_pairs([7, 1, 12], WORDS, torch.Generator().manual_seed(2))
    target = batch["target"]
    edited = module.edits(batch["net_input"]["src_tokens"], target, PAD)
    task = SimpleNamespace(source_dictionary=WORDS, target_dictionary=WORDS)
    config = module.EditWeightedLossConfig(sentence_avg=False)
    loss, size, log = module.EditWeightedLoss(config, task)(net, batch)

    log_probs = net(**batch["net_input"])[0].log_softmax(-1)
    right = log_probs.gather(2, target[..., None])[..., 0]
    others = (log_probs.sum(-1) - right) / (len(WORDS) - 1)
    weights = target.ne(PAD) * (1 + 2 * edited)
    assert float(size) == int(weights.sum()) > int(target.ne(PAD).sum())
    expected = -(weights * (0.9 * right + 0.1 * others)).sum()
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)
    with metrics.aggregate() as logged:
        module.EditWeightedLoss.reduce_metrics([log])
        scores = logged.get_smoothed_values()
    bits = -float(right[edited].mean()) / math.log(2)
    assert scores["edit_nll_loss"] == pytest.approx(bits, abs=1e-3)
