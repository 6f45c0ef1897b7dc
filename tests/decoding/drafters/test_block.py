"""Block drafts from a scripted network, and where they are cut."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.loop import draft_verify_accept
from fairseq_aggdec.decoding.search_rules import SearchRules
from tests.scripted_decoding import (
    EOS,
    PAD,
    UNK,
    ScriptedBlockModel,
    ScriptedVerifier,
    examples,
    outputs_of,
    with_length_cap,
)

VOCABULARY = 12
words = st.integers(UNK, VOCABULARY - 1)
targets_of_batch = st.lists(st.lists(words, max_size=20).map(lambda s: [*s, EOS]), min_size=1, max_size=5)


def drafts(model: ScriptedBlockModel, lengths: list[int], block_size: int, longest: int = 99) -> list[list[int]]:
    draft = BlockDrafter(model, block_size, EOS).propose(
        outputs_of([[4] * (length - 1) for length in lengths]), [longest] * len(lengths)
    )
    assert draft.known == draft.lengths.tolist()
    return [row[:length].tolist() for row, length in zip(draft.tokens, draft.known, strict=True)]


def test_drafts_end_with_eos_or_the_block() -> None:
    target = [5, 6, 7, EOS]
    assert drafts(ScriptedBlockModel([target] * 4), [1, 2, 4, 3], 3) == [[5, 6, 7], [6, 7, EOS], [EOS], [7, EOS]]
    assert drafts(ScriptedBlockModel([target]), [1], 1) == [[5]]


@pytest.mark.parametrize(("positions", "expected"), [(9, 3), (4, 2), (2, 0), (1, 0)])
def test_drafts_end_at_the_last_position(positions: int, expected: int) -> None:
    model = ScriptedBlockModel([[5, 6, 7, 8, 9, EOS]], max_positions=positions)
    assert drafts(model, [2], 3) == [[6, 7, 8][:expected]]


@examples(30)
@given(targets_of_batch, targets_of_batch, st.integers(1, 9), st.sampled_from([1000, 1000, 6]), st.integers(0, 22))
def test_any_block_drafts_give_the_verifiers_output(
    targets: list[list[int]], others: list[list[int]], block_size: int, positions: int, max_len: int
) -> None:
    """Drafts from right ones to those of other sentences."""
    model = ScriptedBlockModel([*others, *targets][: len(targets)], max_positions=positions)
    rules = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=max_len, min_len=0)
    verifier = ScriptedVerifier(targets, VOCABULARY)
    first = torch.full((len(targets),), EOS)
    decoded = draft_verify_accept(BlockDrafter(model, block_size, EOS), verifier, rules, first, keep_drafts=True)
    assert [sentence.tokens.tolist() for sentence in decoded] == [with_length_cap(t, max_len) for t in targets]
    for sentence in decoded:
        stats = sentence.stats
        assert [len(draft) for draft in sentence.drafts or []] == stats.drafted
        assert max(stats.drafted) <= block_size
        assert len(model.widths) >= stats.iterations, "a draft an iteration"
    assert len(model.widths) == max(sentence.stats.iterations for sentence in decoded), "and none for nothing"
