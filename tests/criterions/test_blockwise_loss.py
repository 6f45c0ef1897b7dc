"""The loss of the heads against a transcription of papers/004 §6, and what is logged."""

import math
from collections import Counter
from typing import Any

import pytest
import torch
from fairseq.logging import metrics

from fairseq_aggdec.criterions.blockwise_loss import (
    BlockwiseLoss,
    BlockwiseLossConfig,
    block_scores,
    targets_of_head,
)
from fairseq_aggdec.models.blockwise_transformer import BlockwiseTransformerModel
from tests.criterions.pairs import random_pairs
from tests.support.helpers import refused_with
from tests.support.random_models import (
    dictionary,
    random_blockwise,
    random_model,
    task_of,
)

WORDS = dictionary(20)
PAD = WORDS.pad()
EOS = WORDS.eos()
K = 4
BATCH = random_pairs([5, 1, 9], WORDS, torch.Generator().manual_seed(2))
"""every head has another number of targets in it"""


def criterion(heads_per_step: int = 1, **options: Any) -> BlockwiseLoss:
    options = {"sentence_avg": False, **options}
    config = BlockwiseLossConfig(heads_per_step=heads_per_step, **options)
    return BlockwiseLoss(config, task_of(WORDS))


def model(kind: str = "learned") -> BlockwiseTransformerModel:
    shape = "pre-norm sinusoidal"
    network = random_blockwise(shape, kind, 3, WORDS, K)
    return network.train()


@torch.no_grad()
def transcription(net: BlockwiseTransformerModel) -> dict[int, float]:
    """For each head, {its number of targets: the sum of minus log p_head(y_{j+head} | y_<=j, x), smoothed}."""
    net_input = BATCH["net_input"]
    losses = {}
    for head in range(1, K + 1):
        count = 0
        total = 0.0
        for row, tokens in enumerate(BATCH["target"]):
            # one sentence, without padding: y1..yT EOS
            source = {
                name: net_input[name][row : row + 1]
                for name in ("src_tokens", "src_lengths")
            }
            read = net_input["prev_output_tokens"][row : row + 1]
            encoded = net.encoder(**source)
            states = net.decoder.extract_features(read, encoded)[0][0]
            output = tokens[tokens.ne(PAD)]
            wanted = output[head - 1 :]
            log_probs = net.decoder.head_logits(states, head).log_softmax(-1)
            for scores, token in zip(log_probs, wanted.tolist(), strict=False):
                right = float(scores[token])
                others = float(scores.sum()) - right
                total -= 0.9 * right
                total -= 0.1 * others / (len(WORDS) - 1)
                count += 1
        losses[count] = total
    return losses


def drawn(net: BlockwiseTransformerModel, seeds: int, **options: Any) -> list[float]:
    """The number of targets with each seed; the loss must be that of the heads that have so many."""
    first, *_ = losses = transcription(net)
    weight = options.get("first_head_weight", 0)
    counts = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        loss, count, log = criterion(**options)(net, BATCH)
        assert count == log["sample_size"] == log["ntokens"]
        drawn_targets = count - weight * first
        counts.append(drawn_targets)
        expected = losses[drawn_targets]
        expected += weight * losses[first]
        assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)
    return counts


def test_the_loss_is_that_of_one_head_drawn_uniformly() -> None:
    net = model()
    times = Counter(drawn(net, 80))
    assert times.keys() == transcription(net).keys()
    # 20 expected, standard deviation 3.9
    assert min(times.values()) >= 10
    assert max(times.values()) <= 32


def test_all_heads_at_once() -> None:
    net = model("identity, own hidden")
    expected = transcription(net)
    total = sum(expected.values())
    for per_step in (K, K + 3):
        loss, count, _ = criterion(per_step)(net, BATCH)
        loss.backward()
        assert count == sum(expected)
        assert float(loss.detach()) == pytest.approx(total, rel=1e-4)
    assert criterion(2, sentence_avg=True)(net, BATCH)[1] == 3
    for name, weight in net.named_parameters():
        if weight.dim() > 1 and "embed" not in name:
            assert weight.grad is not None
            assert weight.grad.any(), name


def test_head_1_is_in_every_batch_where_it_has_a_weight_of_its_own() -> None:
    net = model()
    _, *others = transcription(net)
    assert {*drawn(net, 20, first_head_weight=2.5)} == {*others}
    frozen = model("identity")
    frozen.base_is_frozen = True
    with refused_with("--first-head-weight: head 1 is the output"):
        criterion(K, first_head_weight=2.5)(frozen, BATCH)


def test_a_head_that_cannot_learn_is_not_drawn() -> None:
    net = model("identity")
    first, *others = transcription(net)
    net.base_is_frozen = True
    assert {*drawn(net, 20)} == {*others}
    net.base_is_frozen = False
    assert criterion(K)(net, BATCH)[1] == first + sum(others)


def test_scores_of_blocks() -> None:
    """y1 y2 EOS with two heads: a block ends before the first proposal that head 1 does not confirm."""
    target = torch.tensor([[5, 6, EOS, PAD]])
    first = targets_of_head(target, 1, PAD)
    second = targets_of_head(target, 2, PAD)
    predicted = torch.tensor([[[5, 7, EOS, 4]], [[7, 9, 9, 9]]])
    assert block_scores(predicted, torch.stack([first, second]), PAD) == {
        "_accepted": 4,
        "_blocks": 3,
        "_correct_0": 2,
        "_valid_0": 3,
        "_correct_1": 0,
        "_valid_1": 2,
    }


def test_validation_is_head_one_and_a_score_for_every_head() -> None:
    net = model().eval()
    loss, count, log = criterion()(net, BATCH)
    first, expected = next(iter(transcription(net).items()))
    assert count == first
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)
    with metrics.aggregate(new_root=True) as figures:
        BlockwiseLoss.reduce_metrics([log, log])
    logged = figures.get_smoothed_values()
    accuracies = [name for name in logged if name.startswith("acc_")]
    assert accuracies == [f"acc_{head}" for head in range(1, K + 1)]
    assert 1 <= logged["accepted"] <= K
    assert logged["loss"] == pytest.approx(expected / first / math.log(2), abs=6e-4)


def test_refused() -> None:
    with refused_with("--first-head-weight nan: must be at least"):
        criterion(first_head_weight=math.nan)
    with refused_with("--heads-per-step 0"):
        criterion(0)
    with refused_with("needs --criterion blockwise_loss"):
        model()(**BATCH["net_input"])
    with refused_with("needs --arch blockwise_transformer"):
        criterion()(random_model(1, WORDS), BATCH)
