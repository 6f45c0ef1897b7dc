"""Blockwise parallel decoding through the loop against the algorithm of papers/004 §3 and §5 as it stands there."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.drafters.heads import HeadDrafter, ProposingModel
from fairseq_aggdec.decoding.loop import draft_verify_accept
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Decoded, Order
from fairseq_aggdec.decoding.top_k import best_tokens
from fairseq_aggdec.decoding.verification import EXACT, Acceptance, TopBeta, WithinDistance
from tests.support.scripted_decoding import EOS, FIRST_WORD, PAD, UNK, ScoringVerifier, examples

VOCABULARY = 12
Predict = Callable[[int, Sequence[int]], Tensor]
"""p_i(y_{j+i} | y_<=j): head (from 1) and y1..yj -> scores, V"""


class HeadedScript(ScoringVerifier, ProposingModel):
    """A verifier with heads whose predictions are a function of what was read."""

    def __init__(self, predicts: Sequence[Predict], reads_wait: bool) -> None:
        self.predicts = list(predicts)
        self.reads_wait = reads_wait
        self.read: list[list[int]] = [[] for _ in predicts]
        self.calls = 0

    def score(self, block: Block) -> Iterator[Tensor]:
        self.calls += 1
        logits = []
        widths = block.ragged.rows.bincount().tolist()
        for row, (tokens, width, start) in enumerate(
            zip(block.tokens.tolist(), widths, block.starts.tolist(), strict=True)
        ):
            assert start <= len(self.read[row])
            self.read[row][start:] = tokens[:width]
            logits += [self.predicts[row](1, self.read[row][1 : start + column + 1]) for column in range(width)]
        yield torch.stack(logits)

    def propose(self, lengths: Sequence[int], last_head: int) -> Tensor | None:
        if self.calls == 0:
            return None
        rows = [
            torch.stack([self.predicts[row](head, self.read[row][1 : length - 1]) for head in range(2, last_head + 1)])
            for row, length in enumerate(lengths)
        ]
        return best_tokens(torch.stack(rows), [PAD])

    def keep(self, order: Order) -> None:
        self.predicts = [self.predicts[row] for row in order.rows]
        self.read = [self.read[row] for row in order.rows]


def hashed(seed: int, agreement: float, end: float) -> Predict:
    """A random model: head i is right about what head 1 will say, along head 1's own path, with some probability."""

    def scores(head: int, output: Sequence[int]) -> Tensor:
        random = torch.Generator().manual_seed(hash((seed, head, *output)) % (1 << 40))
        if head > 1 and float(torch.rand((), generator=random)) < agreement:
            path = list(output)
            while len(path) < len(output) + head:
                path.append(int(scores(1, path).argmax()))
            return torch.nn.functional.one_hot(torch.tensor(path[-1]), VOCABULARY) * 5.0 + scores(1, output) * 0.01
        drawn = torch.rand(VOCABULARY, generator=random) * 3
        drawn[:FIRST_WORD] = -9
        if head == 1 and float(torch.rand((), generator=random)) < end:
            drawn[EOS] = 4
        return drawn

    return scores


def decode(
    predicts: Sequence[Predict], heads: int, accept: Acceptance, reads_wait: bool, max_len: int = 40
) -> tuple[list[Decoded], int]:
    """Through the loop; with the number of model calls."""
    model = HeadedScript(predicts, reads_wait)
    rules = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=max_len, min_len=0)
    drafter = HeadDrafter(model, heads, EOS)
    first = torch.full((len(predicts),), EOS)
    return draft_verify_accept(drafter, model, rules, first, accept=accept, keep_drafts=True), model.calls


def as_in_the_paper(predict: Predict, k: int, passes: Callable[[int, Tensor], bool], least: int = 1) -> list[list[int]]:
    """The blocks that §3's three substeps append, one after the other, until one holds EOS; §5.3's `least`."""
    output: list[int] = []
    blocks: list[list[int]] = []
    while EOS not in output:
        proposed = [int(predict(i, output).argmax()) for i in range(1, k + 1)]  # predict
        accepted = 0  # verify
        while accepted < k and passes(proposed[accepted], predict(1, [*output, *proposed[:accepted]])):
            accepted += 1
        block = proposed[: max(accepted, least)]  # accept
        if EOS in block:
            block = block[: block.index(EOS) + 1]
        output += block
        blocks.append(block)
    return blocks


def check(sentence: Decoded, blocks: list[list[int]]) -> None:
    """The loop commits the first token of each of the paper's blocks one iteration earlier."""
    assert sentence.tokens == list(chain.from_iterable(blocks))
    sizes = [len(block) for block in blocks]
    shifted = [1, *sizes[:-1], sizes[-1] - 1]
    assert sentence.stats.committed == (shifted if shifted[-1] else shifted[:-1])


NUMBERS = torch.tensor([math.nan] * FIRST_WORD + list(range(8)))
"""what the words stand for, as of intensities of pixels"""


def near(token: int, scores: Tensor) -> bool:
    """At most one away from the best; special symbols are no numbers."""
    best = int(scores.argmax())
    return token == best or (token != EOS != best and abs(token - best) <= 1)


CRITERIA: dict[str, tuple[Acceptance, Callable[[int, Tensor], bool]]] = {
    "exact": (EXACT, lambda token, scores: token == int(scores.argmax())),
    "top-3": (Acceptance(TopBeta(3, math.inf)), lambda token, scores: token in scores.topk(3).indices),
    "distance 1": (Acceptance(WithinDistance(1, NUMBERS)), near),
}


@pytest.mark.parametrize(("accept", "passes"), CRITERIA.values(), ids=CRITERIA)
@examples(12)
@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans(), st.data())
def test_every_criterion_is_the_papers(
    accept: Acceptance, passes: Callable[[int, Tensor], bool], seed: int, k: int, reads_wait: bool, data: st.DataObject
) -> None:
    """Tokens and block sizes, with and without a least block, alone and in a batch, whether the host waits or not."""
    least = data.draw(st.integers(1, k))
    predicts = [hashed(seed + number, 0.6, 0.15) for number in range(data.draw(st.sampled_from([1, 3])))]
    blocks = [as_in_the_paper(predict, k, passes, least) for predict in predicts]
    if max(sum(map(len, row)) for row in blocks) > 60:
        return
    decoded, calls = decode(predicts, k, replace(accept, minimum=least), reads_wait, max_len=100)
    for sentence, expected in zip(decoded, blocks, strict=True):
        check(sentence, expected)
    assert calls == max(sentence.stats.iterations for sentence in decoded) <= max(map(len, blocks)) + 1
