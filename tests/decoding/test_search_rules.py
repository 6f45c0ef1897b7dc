"""Block-wise search rules against what fairseq's search does, written down for one row and one position."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding import top_k
from fairseq_aggdec.decoding.search_rules import (
    Places,
    Rule,
    SearchRules,
)
from fairseq_aggdec.decoding.tokens import Block
from fairseq_aggdec.decoding.top_k import best, best_entries
from fairseq_aggdec.engine.plain.choice import PLAIN, choose_block, ranked
from tests.support.scripted_decoding import EOS, PAD, UNK, examples

VOCABULARY = 9


def repeated_ngram_ends(read: list[int], size: int) -> set[int]:
    """What may not follow `read`, the decoder's inputs so far, lest an n-gram of it occurs twice."""
    context = read[len(read) - size + 1 :]
    if size < 2 or len(read) < size - 1:
        return set()
    return {
        read[start + size - 1]
        for start in range(len(read) - size + 1)
        if read[start : start + size - 1] == context
    }


def slow_choice(
    logits: list[float], row: int, read: list[int], rules: SearchRules
) -> tuple[int, float]:
    """One step of fairseq's beam search of width one.

    Args:
        logits: V.
        row: number of the row.
        read: the decoder's inputs up to here, the start symbol first.
        rules: with `prefix` and `source_lengths` for all rows.
    """
    step = len(read) - 1
    scores = torch.tensor(logits).log_softmax(0).tolist()
    scores[PAD] = -math.inf
    scores[UNK] -= rules.unk_penalty
    if step >= rules.max_len:
        scores = [
            score if token == EOS else -math.inf for token, score in enumerate(scores)
        ]
    if (
        rules.prefix is not None
        and step < rules.prefix.size(1)
        and step < rules.max_len
    ):
        forced = int(rules.prefix[row, step])
        if forced != PAD:
            scores = [
                score if token == forced else -math.inf
                for token, score in enumerate(scores)
            ]
    else:
        if step < rules.min_len:
            scores[EOS] = -math.inf
        if step < rules.max_len:
            for token in rules.suppressed:
                scores[token] = -math.inf
    for token in repeated_ngram_ends(read, rules.no_repeat_ngram_size):
        scores[token] = -math.inf
    if rules.source_lengths is not None:
        length = int(rules.source_lengths[row])
        scores[EOS] = -math.inf if step < length else 0.0
    token = max(range(VOCABULARY), key=scores.__getitem__)
    return token, scores[token]


options = st.fixed_dictionaries(
    {
        "max_len": st.integers(0, 9),
        "min_len": st.integers(0, 9),
        "unk_penalty": st.sampled_from([0.0, 0.0, 3.0, -3.0, -9.0]),
        "no_repeat_ngram_size": st.sampled_from([0, 0, 1, 2, 3, 4]),
        "suppressed": st.sampled_from([(), (), (5,), (UNK, 6)]),
    }
)


@examples(400)
@given(
    options,
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.integers(1, 6),
    st.data(),
)
def test_choose_equals_one_position_at_a_time(
    options: dict[str, Any], seed: int, batch_size: int, width: int, data: st.DataObject
) -> None:
    # fairseq demands it
    options["min_len"] = min(options["min_len"], options["max_len"])
    generator = torch.Generator().manual_seed(seed)
    starts = torch.tensor(
        data.draw(st.lists(st.integers(0, 5), min_size=batch_size, max_size=batch_size))
    )
    length = int(starts.max()) + width
    # few words: n-grams repeat
    sequence = torch.randint(UNK, 7, (batch_size, length), generator=generator)
    sequence[:, 0] = EOS
    restriction = data.draw(
        st.sampled_from(["none", "prefix", "source length", "both"])
    )
    if restriction in ("prefix", "both"):
        prefix = torch.randint(
            UNK,
            VOCABULARY,
            (batch_size, data.draw(st.integers(0, 6))),
            generator=generator,
        )
        for row in prefix:
            # a short target: its EOS and padding
            row[data.draw(st.integers(0, 6)) :] = PAD
        options.update(prefix=prefix, no_repeat_ngram_size=0)
    if restriction in ("source length", "both"):
        lengths = torch.tensor(
            data.draw(
                st.lists(st.integers(1, 8), min_size=batch_size, max_size=batch_size)
            )
        )
        options.update(source_lengths=lengths, max_len=int(lengths.max()), min_len=1)
    rules = SearchRules(pad=PAD, unk=UNK, eos=EOS, **options)
    logits = 3 * torch.randn(batch_size, width, VOCABULARY, generator=generator)

    block = Block.of(sequence[:, :width], starts.tolist())
    chosen = choose_block(
        [logits.flatten(0, 1).clone()], PLAIN, block, rules, 0, sequence
    )
    tokens = chosen.tokens.view(batch_size, width)
    log_probs = chosen.log_probs.view(batch_size, width)

    assert log_probs.dtype == torch.float32
    for row in range(batch_size):
        for column in range(width):
            position = int(starts[row]) + column
            if position > rules.max_len:
                # behind the end, where EOS is forced: only padding of the block lies there
                continue
            read = sequence[row, : position + 1].tolist()
            token, log_prob = slow_choice(
                logits[row, column].tolist(), row, read, rules
            )
            if log_prob == -math.inf:
                continue  # everything is banned; fairseq fails there
            assert int(tokens[row, column]) == token
            torch.testing.assert_close(
                float(log_probs[row, column]), log_prob, atol=1e-5, rtol=1e-5
            )


def test_an_unknown_word_may_win_where_the_source_ends() -> None:
    """With a negative penalty its score is above that of EOS, which is 0 there (--match-source-len)."""
    rules = SearchRules(
        PAD, UNK, EOS, max_len=3, unk_penalty=-9.0, source_lengths=torch.tensor([2])
    )
    block = Block.of(torch.tensor([[EOS]]), [2])
    chosen = choose_block([torch.zeros(1, VOCABULARY)], PLAIN, block, rules, 0, None)
    assert chosen.tokens.tolist() == [UNK]


@examples(25)
@given(
    st.integers(0, 10_000),
    st.integers(250, 1100),
    st.integers(1, 4),
    st.booleans(),
)
def test_the_best_token_is_found_in_pieces(
    seed: int, vocabulary: int, width: int, tied: bool
) -> None:
    torch.manual_seed(seed)
    scores = torch.randn(2, width, vocabulary)
    if tied:
        scores = scores.round()  # of equal scores, the first token
    scores[..., torch.randint(vocabulary, (30,))] = -math.inf
    expected = scores.max(dim=-1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_k, "_MIN_SCORES_TO_CHUNK", 0)
        values, tokens = best(scores)
    assert values.equal(expected.values)
    assert tokens.equal(expected.indices)


@pytest.mark.parametrize("vocabulary", [64 * 20, 64 * 20 + 7])
def test_the_best_entries_are_found_in_pieces(vocabulary: int) -> None:
    """Banned entries and equal ones among them; the last tokens stand behind all whole pieces."""
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(40, vocabulary, generator=generator).mul(4).round()
    scores[:, :500] = -math.inf
    scores[::2, -1] = 20.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_k, "_MIN_SCORES_TO_CHUNK", 0)
        values, tokens = best_entries(scores, 7)
    assert values.equal(scores.topk(7).values)
    assert values.equal(scores.gather(1, tokens))
    assert all(len(set(row)) == 7 for row in tokens.tolist())


@pytest.mark.parametrize(
    ("prefix", "max_len", "common"),
    [
        ([[5, 6], [5, PAD]], 9, [(5,), (5,)]),
        ([[5, EOS, 6]], 9, [(5,)]),
        ([[5, 6, 7]], 2, [(5, 6)]),
    ],
)
def test_outputs_begin_together_while_each_has_a_forced_token(
    prefix: list[list[int]], max_len: int, common: list[tuple[int, ...]]
) -> None:
    rules = SearchRules(PAD, UNK, EOS, max_len, prefix=torch.tensor(prefix))
    assert rules.common_prefix == common


class Shout(Rule):
    """A rule that is added later, somewhere."""

    def apply(self, scores: Tensor, at: Places) -> None:
        scores[:, 7] = 1.0


class WithAnother(SearchRules):
    further = property(lambda self: [Shout()])


def test_no_fast_way_takes_a_rule_that_it_does_not_know() -> None:
    for kind in (SearchRules, WithAnother):
        rules = kind(PAD, UNK, EOS, max_len=9, prefix=torch.tensor([[5]]))
        values = ranked(
            PLAIN, rules, torch.zeros(1, VOCABULARY), Places(torch.tensor([3]), 3, 3), 1
        )[0]
        assert (
            rules.are_simple
            == (rules.common_prefix != [])
            == (float(values) < 1.0)
            == (kind is SearchRules)
        )
    for options in (
        {"unk_penalty": 1.0},
        {"suppressed": (5,)},
        {"source_lengths": torch.tensor([4])},
    ):
        assert not SearchRules(PAD, UNK, EOS, max_len=9, **options).are_simple
