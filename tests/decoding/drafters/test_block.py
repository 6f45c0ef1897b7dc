"""Block drafts from a scripted network, and where they are cut."""

import pytest

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from tests.scripted_decoding import EOS, ScriptedBlockModel, outputs_of


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
