"""The loss against a slow transcription of the paper, and what is logged."""

import math
from types import SimpleNamespace
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
from tests.support.random_models import dictionary, random_drafter

WORDS = dictionary(20)
K = 4


def criterion(glancing: str = "0.5:0.3", decay: float = 1.0) -> GlancingBlockLoss:
    cfg = GlancingBlockLossConfig(
        glancing=glancing, position_decay=decay, max_update=100, sentence_avg=False
    )
    return GlancingBlockLoss(cfg, SimpleNamespace(target_dictionary=WORDS))


def drafter(
    shape: str = "causal, pre-norm sinusoidal", **changes: Any
) -> NarDrafterModel:
    return random_drafter(shape, 3, WORDS, WORDS, K, **changes)


def sample(lengths: list[int], blocks: int = 3, update: int = 0) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(2)
    pairs = random_pairs(lengths, WORDS, generator)
    prefix = (
        torch.rand(len(lengths), blocks, generator=generator)
        * (torch.tensor(lengths)[:, None] + 1)
    ).long()
    return {**pairs, "prefix_lengths": prefix, "update_num": update}


def transcription(
    model: NarDrafterModel,
    batch: dict[str, Any],
    ratio: float,
    smoothing: float,
    decay: float = 1.0,
) -> tuple[float, float]:
    """The loss of papers §3.2.1, one sentence, block and position after the other, and the sum of the weights."""
    noise = torch.rand(*batch["prefix_lengths"].shape, K)
    net_input, total, size = batch["net_input"], 0.0, 0.0
    decoder = model.decoder

    def scores(feature: Tensor, before: int) -> Tensor:
        if decoder.transitions is not None:
            feature = decoder.transitions(feature, decoder.embed(torch.tensor(before)))
        return decoder.output_layer(feature)

    for row, target in enumerate(batch["target"]):
        tokens = target[target.ne(WORDS.pad())].tolist()  # y1..yT EOS
        source = {
            name: net_input[name][row : row + 1]
            for name in ("src_tokens", "src_lengths")
        }
        for number, length in enumerate(batch["prefix_lengths"][row].tolist()):
            read = torch.tensor([[WORDS.eos(), *tokens[:length]]])
            gold = tokens[length : length + K]
            reading = decoder.read(read, model.encode(**source))
            drafted = [int(read[0, -1])]
            for feature in decoder.draft(reading, torch.tensor([[length]]))[0, 0]:
                logits = scores(feature, drafted[-1])
                logits[[WORDS.pad(), WORDS.bos()]] = -math.inf
                drafted.append(int(logits.argmax()))
            distance = sum(a != b for a, b in zip(drafted[1:], gold, strict=False))
            by_noise = sorted(
                range(len(gold)), key=lambda i: float(noise[row, number, i])
            )
            shown = by_noise[: math.floor(ratio * distance)]
            reveal = torch.zeros(1, 1, K, dtype=torch.bool)
            reveal[..., shown] = True
            padded = torch.tensor([[gold + [WORDS.unk()] * (K - len(gold))]])
            features = decoder.draft(reading, torch.tensor([[length]]), reveal, padded)[
                0, 0
            ]
            befores = [int(read[0, -1]), *gold[:-1]]
            for i, (token, before) in enumerate(zip(gold, befores, strict=True)):
                log_probs = scores(features[i], before).log_softmax(-1)
                if i not in shown:
                    spread = smoothing / (len(WORDS) - 1)
                    weights = torch.full((len(WORDS),), spread)
                    weights[token] = 1 - smoothing
                    total -= decay**i * float(weights @ log_probs)
                    size += decay**i
    return total, size


@pytest.mark.parametrize(
    "shape", ["causal, pre-norm sinusoidal", "bidirectional", "causal, source copy"]
)
@pytest.mark.parametrize("transition_dim", [0, 8])
@pytest.mark.parametrize(
    ("glancing", "update", "decay"),
    [("0.5:0.3", 0, 1.0), ("0.9:0.7", 50, 0.5), ("0", 3, 0.9), ("0.9:0.2", 120, 0.01)],
)
def test_equals_a_transcription(
    shape: str, transition_dim: int, glancing: str, update: int, decay: float
) -> None:
    model, batch = (
        drafter(shape, transition_dim=transition_dim).train(),
        sample([5, 1, 9], update=update),
    )
    criterion_ = criterion(glancing, decay=decay)
    torch.manual_seed(7)
    loss, size, log = criterion_(model, batch)
    torch.manual_seed(7)
    with torch.no_grad():
        expected, weights = transcription(
            model, batch, criterion_.schedule.ratio(update), 0.1, decay
        )
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)
    assert float(size) == float(log["sample_size"]) == pytest.approx(weights, rel=1e-5)
    if decay == 1.0:
        assert size == log["ntokens"]


def test_validation_is_deterministic_and_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, batch = drafter(dropout=0.3).eval(), sample([5, 7, 2])
    monkeypatch.setattr(model, "_first_pass", None)
    del batch["update_num"]
    first, count, log = criterion()(model, batch)
    again, _, _ = criterion()(model, batch)
    assert torch.equal(first, again)
    assert count == int(
        blocks_at(batch["target"], batch["prefix_lengths"], K, WORDS.pad()).valid.sum()
    )
    assert log["_blocks"] == 9


def test_acceptance() -> None:
    """Two blocks: two right, one wrong, one right; and a short one that is right to its end."""
    target = torch.tensor(
        [
            [10, 11, 12, 13, WORDS.eos()],
            [20, WORDS.eos(), WORDS.pad(), WORDS.pad(), WORDS.pad()],
        ]
    )
    blocks = blocks_at(target, torch.tensor([[0], [0]]), K, WORDS.pad())
    sums = acceptance(torch.tensor([10, 11, 9, 13, 20, WORDS.eos()]), blocks)
    assert (int(sums["_accepted"]), sums["_blocks"]) == (4, 2)
    assert [int(sums[f"_correct_{i}"]) for i in range(K)] == [2, 2, 0, 1]
    assert [int(sums[f"_valid_{i}"]) for i in range(K)] == [2, 2, 1, 1]


@pytest.mark.parametrize("text", ["half", "1.5", "0.5:0.3:0.1"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(AggdecError, match="--glancing"):
        criterion(text)
