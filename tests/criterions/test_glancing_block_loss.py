"""The loss against a slow transcription of the paper, and what is logged."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.criterions.glancing_block_loss import (
    GlancingBlockLoss,
    GlancingBlockLossConfig,
    acceptance,
)
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.nar_drafter import NarDrafterModel, blocks_at
from tests.criterions.pairs import random_pairs
from tests.support.random_models import dictionary, random_drafter, task_of

WORDS = dictionary(20)
PAD = WORDS.pad()
EOS = WORDS.eos()
K = 4


def criterion(glancing: str = "0.5:0.3", decay: float = 1.0) -> GlancingBlockLoss:
    config = GlancingBlockLossConfig(
        glancing=glancing, position_decay=decay, max_update=100, sentence_avg=False
    )
    return GlancingBlockLoss(config, task_of(WORDS))


def drafter(shape: str, **changes: Any) -> NarDrafterModel:
    return random_drafter(
        shape,
        3,
        WORDS,
        K,
        **changes,
    )


def sample(lengths: list[int]) -> dict[str, Any]:
    """Three blocks for each sentence, after random prefixes."""
    generator = torch.Generator().manual_seed(2)
    pairs = random_pairs(lengths, WORDS, generator)
    share = torch.rand(len(lengths), 3, generator=generator)
    prefix_lengths = (share * (torch.tensor(lengths)[:, None] + 1)).long()
    return {**pairs, "prefix_lengths": prefix_lengths}


@torch.no_grad()
def transcription(
    model: NarDrafterModel, batch: dict[str, Any], ratio: float, decay: float
) -> tuple[float, float]:
    """The loss of papers §3.2.1, one sentence, block and position after the other, and the sum of the weights."""
    noise = torch.rand(*batch["prefix_lengths"].shape, K)
    net_input = batch["net_input"]
    decoder = model.decoder
    total = size = 0.0

    def scores(feature: Tensor, before: int) -> Tensor:
        if decoder.transitions is not None:
            feature = decoder.transitions(feature, decoder.embed(torch.tensor(before)))
        return decoder.output_layer(feature)

    for row, target in enumerate(batch["target"]):
        tokens = target[target.ne(PAD)].tolist()  # y1..yT EOS
        encoded = model.encode(
            net_input["src_tokens"][row : row + 1],
            net_input["src_lengths"][row : row + 1],
        )
        for block, length in enumerate(batch["prefix_lengths"][row].tolist()):
            # the first pass: a draft, each token by the one before
            prefix = [EOS, *tokens[:length]]
            gold = tokens[length : length + K]
            reading = decoder.read(torch.tensor([prefix]), encoded)
            drafted = prefix[-1:]
            for feature in decoder.draft(reading, torch.tensor([[length]]))[0, 0]:
                logits = scores(feature, drafted[-1])
                logits[[PAD, WORDS.bos()]] = -math.inf
                drafted.append(int(logits.argmax()))

            # the more tokens are wrong, the more are shown
            distance = sum(a != b for a, b in zip(drafted[1:], gold, strict=False))
            order = noise[row, block, : len(gold)].argsort()
            count = math.floor(ratio * distance)
            shown = order[:count].tolist()
            reveal = torch.zeros(1, 1, K, dtype=torch.bool)
            reveal[..., shown] = True

            # the second pass learns the others
            missing = K - len(gold)
            padded = torch.tensor([[gold + [WORDS.unk()] * missing]])
            features = decoder.draft(
                reading,
                torch.tensor([[length]]),
                reveal,
                padded,
            )
            befores = [prefix[-1], *gold]
            for i, token in enumerate(gold):
                if i in shown:
                    continue
                logits = scores(features[0, 0, i], befores[i])
                log_probs = logits.log_softmax(-1)
                others = log_probs.sum() - log_probs[token]
                others /= len(WORDS) - 1
                smoothed = 0.9 * log_probs[token] + 0.1 * others
                weight = decay**i
                total -= weight * float(smoothed)
                size += weight
    return total, size


@pytest.mark.parametrize(
    "shape", ["causal, pre-norm sinusoidal", "bidirectional", "causal, source copy"]
)
@pytest.mark.parametrize("transition_dim", [0, 8])
@pytest.mark.parametrize(
    "glancing, update, ratio, decay",
    [
        ("0.5:0.3", 0, 0.5, 1.0),
        ("0.9:0.7", 50, 0.8, 0.5),
        ("0", 3, 0.0, 0.9),
        ("0.9:0.2", 120, 0.2, 0.01),
    ],
)
def test_equals_a_transcription(
    shape: str,
    transition_dim: int,
    glancing: str,
    update: int,
    ratio: float,
    decay: float,
) -> None:
    model = drafter(shape, transition_dim=transition_dim).train()
    batch = {**sample([5, 1, 9]), "update_num": update}
    torch.manual_seed(7)
    loss, size, log = criterion(glancing, decay)(model, batch)
    torch.manual_seed(7)
    expected, weights = transcription(model, batch, ratio, decay)
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)
    assert float(size) == float(log["sample_size"]) == pytest.approx(weights, rel=1e-5)
    if decay == 1.0:
        assert size == log["ntokens"]


def test_validation_is_deterministic_and_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = drafter("causal, pre-norm sinusoidal", dropout=0.3).eval()
    monkeypatch.setattr(model, "_first_pass", None)
    batch = sample([5, 7, 2])
    first, count, log = criterion()(model, batch)
    assert torch.equal(first, criterion()(model, batch)[0])
    blocks = blocks_at(
        batch["target"],
        batch["prefix_lengths"],
        K,
        PAD,
    )
    assert count == int(blocks.valid.sum())
    assert log["_blocks"] == 9


def test_acceptance() -> None:
    """Two blocks: two right, one wrong, one right; and a short one that is right to its end."""
    target = torch.tensor([[10, 11, 12, 13, EOS], [20, EOS, PAD, PAD, PAD]])
    blocks = blocks_at(target, torch.tensor([[0], [0]]), K, PAD)
    sums = acceptance(torch.tensor([10, 11, 9, 13, 20, EOS]), blocks)
    assert (int(sums["_accepted"]), sums["_blocks"]) == (4, 2)
    correct = [int(sums[f"_correct_{i}"]) for i in range(K)]
    valid = [int(sums[f"_valid_{i}"]) for i in range(K)]
    assert correct == [2, 2, 0, 1]
    assert valid == [2, 2, 1, 1]


@pytest.mark.parametrize("text", ["half", "1.5", "0.5:0.3:0.1"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(AggdecError, match="--glancing"):
        criterion(text)
