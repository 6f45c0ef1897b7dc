"""The growing outputs of a batch against plain lists."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.verification import Verdict
from tests.scripted_decoding import EOS, PAD, UNK, examples

FIRST = 2
RULES = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=3)
# of one sentence: (tokens committed, tokens drafted) in each iteration until it ends
progress = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=5)


@examples(30)
@given(st.lists(progress, min_size=1, max_size=4), st.booleans(), st.integers(0, 99))
def test_rows_grow_and_leave(batch: list[list[tuple[int, int]]], keep_drafts: bool, seed: int) -> None:
    """Whatever stands behind what is committed, every sentence is the tokens that were committed for it."""
    generator = torch.Generator().manual_seed(seed)
    outputs = Outputs(torch.full((len(batch),), FIRST), RULES, keep_drafts)
    tokens: list[list[int]] = [[] for _ in batch]
    scores: list[list[float]] = [[] for _ in batch]
    drafts: list[list[list[int]]] = [[] for _ in batch]
    iteration = 0
    while outputs.rows:
        steps = [batch[sentence][iteration] for sentence in outputs.rows]
        committed, drafted = (list(column) for column in zip(*steps, strict=True))
        finished = [iteration == len(batch[sentence]) - 1 for sentence in outputs.rows]
        block = torch.randint(5, 90, (len(steps), 5), generator=generator)
        for row, (count, ends) in enumerate(zip(committed, finished, strict=True)):
            block[row, count - 1] = EOS if ends else 4
        values = torch.randn(len(steps), 5, generator=generator)
        draft = torch.randint(5, 90, (len(steps), 4), generator=generator)
        last = torch.tensor(committed) - 1
        for row, sentence in enumerate(outputs.rows):
            tokens[sentence] += block[row, : committed[row]].tolist()
            scores[sentence] += values[row, : committed[row]].tolist()
            drafts[sentence].append(draft[row, : drafted[row]].tolist())
        before = list(outputs.rows)
        passed = torch.arange(5) < last[:, None]
        verdict = Verdict.of([5] * len(steps), passed.flatten(), block.flatten(), values.flatten())
        outcome = outputs.commit(Draft(draft, drafted), verdict)
        assert (outcome.drafted, outcome.committed) == (drafted, committed)
        remaining = list(range(len(before))) if outcome.remaining is None else outcome.remaining.tolist()
        assert (outcome.remaining is None) == (not any(finished))
        assert sorted(remaining) == [row for row, has_ended in enumerate(finished) if not has_ended]
        assert all(row == place or finished[place] for place, row in enumerate(remaining)), "a row moved needlessly"
        assert outputs.rows == [before[row] for row in remaining]
        assert outputs.texts == [[FIRST, *tokens[sentence]] for sentence in outputs.rows]
        for row, sentence in enumerate(outputs.rows):
            done = batch[sentence][: iteration + 1]
            failed = [count == 1 for count, width in done if width > 0]  # nothing but the verifier's own token
            assert outputs.failures[row] == next((n for n, has in enumerate(reversed(failed)) if not has), len(failed))
        assert outputs.known_lengths == outputs.lengths.tolist()
        iteration += 1
    for number, decoded in enumerate(outputs.finished()):
        assert decoded.tokens.tolist() == tokens[number]
        assert decoded.log_probs.tolist() == pytest.approx(scores[number])
        assert decoded.stats.committed == [count for count, _ in batch[number]]
        assert decoded.stats.drafted == [count for _, count in batch[number]]
        assert decoded.stats.accepted == [count - 1 for count, _ in batch[number]]
        found = None if decoded.drafts is None else [draft.tolist() for draft in decoded.drafts]
        assert found == (drafts[number] if keep_drafts else None)


def commit(outputs: Outputs, tokens: list[list[int]], committed: list[int]) -> None:
    """Without drafts."""
    flat = [token for row in tokens for token in row]
    passed = [column < count - 1 for row, count in zip(tokens, committed, strict=True) for column in range(len(row))]
    verdict = Verdict([len(row) for row in tokens], passed, flat, [0.0] * len(flat))
    outputs.commit(Draft.none(len(tokens), outputs.device), verdict)


def test_a_block_begins_with_the_last_token_at_its_place() -> None:
    """Where rules look back, they see the draft behind it."""
    outputs = Outputs(torch.tensor([FIRST, FIRST]), RULES)
    commit(outputs, [[7, 8], [9, 9]], [2, 1])
    block = outputs.block(Draft.whole(torch.tensor([[20, 21], [30, 31]])))
    assert block.tokens.tolist() == [[8, 20, 21], [9, 30, 31]]
    assert (block.starts.tolist(), block.first_start, block.last_start) == ([2, 1], 1, 2)
    assert outputs.sequence(block).tolist() == [[FIRST, 7, 8, 20, 21], [FIRST, 9, 30, 31, PAD]]
    commit(outputs, [[EOS], [EOS]], [1, 1])
    assert [sentence.tokens.tolist() for sentence in outputs.finished()] == [[7, 8, EOS], [9, EOS]]
