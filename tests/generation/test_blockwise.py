"""Blockwise parallel decoding by whole models against the algorithm of papers/004 §3 and §5 as it stands there."""

from collections.abc import Callable
from functools import cache
from itertools import chain
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_aggdec.generation.drafting import BlockDraftOptions
from tests.support.random_models import random_batch, random_blockwise
from tests.support.small_generators import generator

NUMBERS = Dictionary()
for value in range(6):
    NUMBERS.add_symbol(str(value))
EOS = NUMBERS.eos()
HEADS = 5
LONGEST = 20

Predict = Callable[[int, tuple[int, ...]], Tensor]
"""p_i(y_{j+i} | y_<=j): head (from 1) and y1..yj -> log-probabilities, V"""


def heads_of(model: Any, net_input: dict[str, Tensor]) -> Predict:
    """By full forward passes."""
    encoder_out = model.encoder(**net_input)

    @cache
    def features(output: tuple[int, ...]) -> Tensor:
        found: Tensor = model.decoder.extract_features(
            torch.tensor([[EOS, *output]]), encoder_out
        )[0][0, -1]
        return found

    def predict(head: int, output: tuple[int, ...]) -> Tensor:
        scores: Tensor = model.decoder.head_logits(features(output), head).log_softmax(
            -1
        )
        scores[
            NUMBERS.pad() if head == 1 else model.decoder.never_proposed
        ] = -torch.inf
        return scores

    return predict


def as_in_the_paper(
    predict: Predict,
    k: int,
    passes: Callable[[int, Tensor], bool],
    least: int,
) -> list[list[int]]:
    """The blocks that §3's three substeps append, one after the other, until one holds EOS; §5.3's `least`."""
    output: list[int] = []
    blocks: list[list[int]] = []
    while EOS not in output and len(output) < LONGEST:
        # predict
        proposed = [int(predict(i, tuple(output)).argmax()) for i in range(1, k + 1)]
        accepted = 0  # verify
        while accepted < k and passes(
            proposed[accepted], predict(1, (*output, *proposed[:accepted]))
        ):
            accepted += 1
        block = proposed[: max(accepted, least)]  # accept
        if EOS in block:
            block = block[: block.index(EOS) + 1]
        output += block
        blocks.append(block)
    return blocks


def near(token: int, scores: Tensor) -> bool:
    """At most one away from the best, of numbers, which special symbols are not."""
    best = int(scores.argmax())
    return token == best or (
        min(token, best) >= NUMBERS.nspecial and abs(token - best) <= 1
    )


CRITERIA: dict[str, tuple[dict[str, Any], Callable[[int, Tensor], bool]]] = {
    "exact": ({}, lambda token, scores: token == int(scores.argmax())),
    "top-3": ({"top_beta": 3}, lambda token, scores: token in scores.topk(3).indices),
    "distance 1": ({"accept_distance": 1.0}, near),
}


@pytest.mark.parametrize("options, passes", CRITERIA.values(), ids=CRITERIA)
@torch.no_grad()
def test_every_criterion_is_the_papers(
    options: dict[str, Any], passes: Callable[[int, Tensor], bool]
) -> None:
    """Tokens and block sizes, with and without a least block, in a batch; first tokens come an iteration earlier."""
    ended = 0
    lengths = set[int]()
    for seed, kind in enumerate(("identity", "learned, own hidden"), 4):
        model = random_blockwise(
            "post-norm sinusoidal", kind, seed, NUMBERS, HEADS, 0.15
        )
        sample = random_batch(seed, NUMBERS, [5, 9, 2, 7, 1, 3])
        sources = [
            {name: value[[row]] for name, value in sample["net_input"].items()}
            for row in range(6)
        ]
        predicts = [heads_of(model, source) for source in sources]
        for least in (1, 2):
            search = {"max_len_b": LONGEST, "min_len": 0, "min_block": least} | options
            draft = BlockDraftOptions(None, HEADS)
            ours = generator([model], "blockwise", NUMBERS, block_draft=draft, **search)
            for predict, (one,) in zip(
                predicts, ours.generate([model], sample), strict=True
            ):
                blocks = as_in_the_paper(predict, HEADS, passes, least)
                if EOS not in blocks[-1] or sum(map(len, blocks)) > LONGEST:
                    continue  # the longest outputs end otherwise
                assert one["tokens"].tolist() == list(chain.from_iterable(blocks))
                sizes = [len(block) for block in blocks]
                shifted = [1, *sizes[:-1], sizes[-1] - 1]
                assert one["stats"].committed == (
                    shifted if shifted[-1] else shifted[:-1]
                )
                ended += 1
                lengths |= {*sizes}
    assert ended > 6
    assert len(lengths) > 2
