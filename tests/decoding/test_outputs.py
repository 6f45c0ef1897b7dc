"""The growing outputs of a batch against plain lists."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.outputs import Outputs
from tests.scripted_decoding import EOS, PAD, examples

FIRST = 2
# of one sentence: (tokens committed, tokens drafted) in each iteration until it ends
progress = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=5)


@examples(60)
@given(st.lists(progress, min_size=1, max_size=4), st.booleans(), st.integers(0, 99))
def test_rows_grow_and_leave(batch: list[list[tuple[int, int]]], keep_drafts: bool, seed: int) -> None:
    """Whatever stands behind what is committed, every sentence is the tokens that were committed for it."""
    generator = torch.Generator().manual_seed(seed)
    outputs = Outputs(torch.full((len(batch),), FIRST), max_len=3, pad=PAD, keep_drafts=keep_drafts)
    tokens: list[list[int]] = [[] for _ in batch]
    scores: list[list[float]] = [[] for _ in batch]
    drafts: list[list[list[int]]] = [[] for _ in batch]
    iteration = 0
    while outputs.rows:
        steps = [batch[sentence][iteration] for sentence in outputs.rows]
        committed, drafted = (list(column) for column in zip(*steps, strict=True))
        finished = [iteration == len(batch[sentence]) - 1 for sentence in outputs.rows]
        block = torch.randint(5, 90, (len(steps), 5), generator=generator)
        values = torch.randn(len(steps), 5, generator=generator)
        outputs.reserve(max(outputs.lengths_host) + 6)
        outputs.append(block, values, torch.tensor(committed))
        for row, sentence in enumerate(outputs.rows):
            tokens[sentence] += block[row, : committed[row]].tolist()
            scores[sentence] += values[row, : committed[row]].tolist()
            drafts[sentence].append(block[row, : drafted[row]].tolist())
        before = list(outputs.rows)
        remaining = outputs.settle(block, drafted, [count - 1 for count in committed], committed, finished)
        assert sorted(remaining) == [row for row, has_ended in enumerate(finished) if not has_ended]
        assert all(row == place or finished[place] for place, row in enumerate(remaining)), "a row moved needlessly"
        assert outputs.rows == [before[row] for row in remaining]
        assert outputs.lengths_host == outputs.lengths.tolist() == [len(tokens[i]) + 1 for i in outputs.rows]
        for row, sentence in enumerate(outputs.rows):
            assert outputs.tokens[row, : outputs.lengths_host[row]].tolist() == [FIRST, *tokens[sentence]]
        iteration += 1
    for number, decoded in enumerate(outputs.finished()):
        assert decoded.tokens.tolist() == tokens[number]
        assert decoded.log_probs.tolist() == pytest.approx(scores[number])
        assert decoded.stats.committed == [count for count, _ in batch[number]]
        assert decoded.stats.drafted == [count for _, count in batch[number]]
        assert decoded.stats.accepted == [count - 1 for count, _ in batch[number]]
        found = None if decoded.drafts is None else [draft.tolist() for draft in decoded.drafts]
        assert found == (drafts[number] if keep_drafts else None)


def test_a_block_is_placed_over_the_last_token() -> None:
    """Where rules look back: each row's block begins with the row's last token, at that token's place."""
    outputs = Outputs(torch.tensor([FIRST, FIRST]), max_len=6, pad=PAD, keep_drafts=False)
    outputs.append(torch.tensor([[7, 8], [9, 9]]), torch.zeros(2, 2), torch.tensor([2, 1]))
    outputs.place(torch.tensor([[8, 20, 21], [9, 30, 31]]))
    assert outputs.tokens[:, :5].tolist() == [[FIRST, 7, 8, 20, 21], [FIRST, 9, 30, 31, PAD]]
    outputs.append(torch.tensor([[EOS], [EOS]]), torch.zeros(2, 1), torch.tensor([1, 1]))
    outputs.settle(torch.zeros(2, 0, dtype=torch.long), [0, 0], [0, 0], [3, 2], [True, True])
    assert [sentence.tokens.tolist() for sentence in outputs.finished()] == [[7, 8, EOS], [9, EOS]]


def test_finished_sentences_are_copies() -> None:
    outputs = Outputs(torch.tensor([FIRST, FIRST]), max_len=4, pad=PAD, keep_drafts=False)
    outputs.append(torch.tensor([[EOS], [8]]), torch.zeros(2, 1), torch.tensor([1, 1]))
    buffer = outputs.tokens
    outputs.settle(torch.zeros(2, 0, dtype=torch.long), [0, 0], [0, 0], [1, 1], [True, False])
    buffer.fill_(99)
    assert outputs.finished()[0].tokens.tolist() == [EOS]
