"""The loss of the heads against a slow transcription of papers/004 §6, and what is logged."""

import math
from types import SimpleNamespace
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
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.blockwise_transformer import BlockwiseTransformerModel
from tests.criterions.pairs import random_pairs
from tests.support.random_models import dictionary, random_blockwise, random_model

WORDS = dictionary(20)
PAD = WORDS.pad()
K = 4


def criterion(heads_per_step: int = 1, **options: Any) -> BlockwiseLoss:
    cfg = BlockwiseLossConfig(
        heads_per_step=heads_per_step, **{"sentence_avg": False, **options}
    )
    return BlockwiseLoss(cfg, SimpleNamespace(target_dictionary=WORDS))


def model(kind: str = "learned") -> BlockwiseTransformerModel:
    return random_blockwise("pre-norm sinusoidal", kind, 3, WORDS, WORDS, K)


def sample(lengths: list[int]) -> dict[str, Any]:
    return random_pairs(lengths, WORDS, torch.Generator().manual_seed(2))


@torch.no_grad()
def transcription(
    net: BlockwiseTransformerModel, batch: dict[str, Any], head: int
) -> tuple[float, int]:
    """Minus log p_head(y_{j+head} | y_<=j, x), smoothed, over all sentences and all j, one by one."""
    total, count = 0.0, 0
    for row, tokens in enumerate(batch["target"]):
        output = tokens[tokens.ne(PAD)].tolist()  # y1..yT EOS
        source = {
            name: batch["net_input"][name][row : row + 1]
            for name in ("src_tokens", "src_lengths")
        }
        encoder_out = net.encoder(**source)
        for j in range(len(output) - head + 1):
            read = torch.tensor([[WORDS.eos(), *output[:j]]])
            features = net.decoder.extract_features(read, encoder_out)[0][0, -1]
            log_probs = net.decoder.head_logits(features, head).log_softmax(-1)
            weights = torch.full((len(WORDS),), 0.1 / (len(WORDS) - 1))
            weights[output[j + head - 1]] = 0.9
            total -= float(weights @ log_probs)
            count += 1
    return total, count


def test_the_loss_is_that_of_one_head_drawn_uniformly() -> None:
    net, batch = model().train(), sample([5, 1, 9])
    losses = {transcription(net, batch, head) for head in range(1, K + 1)}
    seen = dict.fromkeys(losses, 0)
    for seed in range(80):
        torch.manual_seed(seed)
        loss, count, log = criterion()(net, batch)
        assert count == log["sample_size"] == log["ntokens"]
        [drawn] = [
            e
            for e in losses
            if e[1] == count and math.isclose(e[0], float(loss.detach()), rel_tol=1e-4)
        ]
        seen[drawn] += 1
    # 20 expected, standard deviation 3.9
    assert all(10 <= times <= 32 for times in seen.values()), seen


def test_all_heads_at_once() -> None:
    net, batch = model("identity, own hidden").train(), sample([5, 1, 9])
    expected = [transcription(net, batch, head) for head in range(1, K + 1)]
    for per_step in (K, K + 3):
        loss, count, _ = criterion(per_step)(net, batch)
        loss.backward()
        assert float(loss.detach()) == pytest.approx(
            sum(total for total, _ in expected), rel=1e-4
        )
        assert count == sum(number for _, number in expected)
    assert criterion(2, sentence_avg=True)(net, batch)[1] == 3
    weights = [
        weight
        for name, weight in net.named_parameters()
        if weight.dim() > 1 and "embed" not in name
    ]
    assert all(
        weight.grad is not None and bool(weight.grad.any()) for weight in weights
    )


def test_head_1_is_in_every_batch_where_it_has_a_weight_of_its_own() -> None:
    net, batch = model().train(), sample([5, 1, 9])
    first, *others = [transcription(net, batch, head) for head in range(1, K + 1)]
    seen = set()
    for seed in range(20):
        torch.manual_seed(seed)
        loss, count, log = criterion(first_head_weight=2.5)(net, batch)
        [drawn] = [e for e in others if e[1] + 2.5 * first[1] == count]
        assert float(loss.detach()) == pytest.approx(
            2.5 * first[0] + drawn[0], rel=1e-4
        )
        assert count == log["ntokens"]
        seen.add(drawn)
    assert seen == set(others)

    frozen = model("identity").train()
    frozen.base_is_frozen = True
    with pytest.raises(
        AggdecError,
        match="--first-head-weight: head 1 is the output of the frozen base",
    ):
        criterion(K, first_head_weight=2.5)(frozen, batch)


def test_a_head_that_cannot_learn_is_not_drawn() -> None:
    net, batch = model("identity").train(), sample([5, 1])
    net.base_is_frozen = True
    counts = set()
    for seed in range(20):
        torch.manual_seed(seed)
        counts.add(criterion()(net, batch)[1])
    assert counts == {transcription(net, batch, head)[1] for head in range(2, K + 1)}
    net.base_is_frozen = False
    assert criterion(K)(net, batch)[1] == sum(
        transcription(net, batch, head)[1] for head in range(1, K + 1)
    )


def test_scores_of_blocks() -> None:
    """y1 y2 EOS with two heads: a block ends before the first proposal that head 1 does not confirm."""
    target = torch.tensor([[5, 6, WORDS.eos(), PAD]])
    targets = torch.stack([targets_of_head(target, head, PAD) for head in (1, 2)])
    predicted = torch.tensor([[[5, 7, WORDS.eos(), 4]], [[7, 9, 9, 9]]])
    sums = {
        name: int(value)
        for name, value in block_scores(predicted, targets, PAD).items()
    }
    assert sums == {
        "_accepted": 4, "_blocks": 3, "_correct_0": 2, "_valid_0": 3, "_correct_1": 0, "_valid_1": 2
    }  # fmt: skip


def test_validation_is_head_one_and_a_score_for_every_head() -> None:
    net, batch = model().eval(), sample([5, 1, 9])
    loss, count, log = criterion()(net, batch)
    expected, number = transcription(net, batch, 1)
    assert (float(loss.detach()), count) == (pytest.approx(expected, rel=1e-4), number)
    with metrics.aggregate(new_root=True) as figures:
        BlockwiseLoss.reduce_metrics([log, log])
    logged = figures.get_smoothed_values()
    assert [name for name in logged if name.startswith("acc_")] == [
        f"acc_{i}" for i in range(1, K + 1)
    ]
    assert 1 <= logged["accepted"] <= K
    assert logged["loss"] == pytest.approx(expected / number / math.log(2), abs=6e-4)


def test_refused() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        (
            {"first_head_weight": math.nan},
            "--first-head-weight nan: must be at least 0",
        ),
        ({"heads_per_step": 0}, "--heads-per-step 0"),
    ]
    for options, message in refused:
        with pytest.raises(AggdecError, match=message):
            criterion(**options)
    with pytest.raises(
        AggdecError,
        match="--arch blockwise_transformer needs --criterion blockwise_loss",
    ):
        model().train()(**sample([3])["net_input"])
    with pytest.raises(
        AggdecError,
        match="--criterion blockwise_loss needs --arch blockwise_transformer",
    ):
        criterion()(random_model(1, WORDS, WORDS), sample([3]))
