"""The growing outputs of a batch against plain lists."""

import torch

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.verification import Verdict
from tests.scripted_decoding import EOS, PAD, UNK

FIRST = 2
RULES = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=3)


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
