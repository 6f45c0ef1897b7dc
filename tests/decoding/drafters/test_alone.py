"""What a block drafter decodes without a verifier."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.drafters.unverified import decode_unverified
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Decoded
from tests.support.scripted_decoding import EOS, PAD, UNK, ScriptedBlockModel, examples, with_length_cap


def alone(model: ScriptedBlockModel, block_size: int, max_len: int = 200, **rules: object) -> list[Decoded]:
    settings = {"pad": PAD, "unk": UNK, "eos": EOS, "max_len": max_len, "min_len": 0, **rules}
    first = torch.full((len(model.targets),), EOS)
    return decode_unverified(model, block_size, SearchRules(**settings), first, keep_drafts=True)  # type: ignore[arg-type]


@examples(25)
@given(
    st.lists(st.lists(st.integers(UNK, 11), max_size=20).map(lambda s: [*s, EOS]), min_size=1, max_size=5),
    st.integers(1, 9),
    st.integers(0, 22),
)
def test_a_drafter_alone_says_its_drafts(targets: list[list[int]], block_size: int, max_len: int) -> None:
    model = ScriptedBlockModel(targets)
    decoded = alone(model, block_size, max_len)
    for sentence, target in zip(decoded, targets, strict=True):
        expected = with_length_cap(target, max_len)
        assert sentence.tokens == expected
        assert len(sentence.log_probs) == len(sentence.tokens)
        assert sentence.stats.iterations == -(-len(expected) // block_size)
        assert sentence.stats.committed == sentence.stats.accepted == sentence.stats.drafted
        assert sum(sentence.stats.committed) == len(expected)
        assert torch.cat(sentence.drafts or []).tolist() == expected


def test_scores_of_a_drafter_alone_are_its_own() -> None:
    model = ScriptedBlockModel([[5, 4, EOS]])
    [sentence] = alone(ScriptedBlockModel([[5, 4, EOS]]), 2)
    logits = torch.cat([model.score([[EOS] * n], 1)[0] for n in (1, 2, 3)])
    expected = logits.log_softmax(-1).gather(1, torch.tensor([[5], [4], [EOS]])).squeeze(1)
    torch.testing.assert_close(torch.tensor(sentence.log_probs), expected)


def test_search_rules_bind_a_drafter_alone() -> None:
    target = [5, EOS]
    assert alone(ScriptedBlockModel([target]), 4, min_len=3)[0].tokens == [5, 4, 4, EOS]
    assert alone(ScriptedBlockModel([target]), 4, suppressed=(5,))[0].tokens == [4, EOS]
    assert alone(ScriptedBlockModel([target]), 4, prefix=torch.tensor([[7, 8, 9]]))[0].tokens == [7, 8, 9, EOS]
