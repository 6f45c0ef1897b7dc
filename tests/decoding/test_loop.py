"""The loop against a scripted verifier: whatever is drafted, the verifier's own output comes out."""

import random
from collections.abc import Sequence
from itertools import accumulate

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.loop import draft_verify_accept
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import VERIFY_ALL, Drafter, DraftSchedule
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Decoded, Draft, Outcome, RowSelection
from fairseq_aggdec.decoding.verification import EXACT, Acceptance, TopBeta
from fairseq_aggdec.scheduling.costs import Costs, DraftCost
from fairseq_aggdec.scheduling.draft_length import DraftLengths
from tests.support.scripted_decoding import (
    EOS,
    PAD,
    UNK,
    OfUnknownLength,
    OracleDrafter,
    ScriptedVerifier,
    examples,
)

VOCABULARY = 12

words = st.integers(UNK, VOCABULARY - 1)
sentences = st.lists(words, max_size=20)
targets_of_batch = st.lists(sentences.map(lambda s: [*s, EOS]), min_size=1, max_size=5)


class FixedDrafter(Drafter):
    """The given drafts, one an iteration, for every row alike; then none."""

    def __init__(self, *drafts: list[int]) -> None:
        self.drafts = list(drafts)

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        draft = self.drafts.pop(0) if self.drafts else []
        return Draft.whole(
            torch.tensor([draft] * len(outputs.rows), dtype=torch.long).view(
                len(outputs.rows), -1
            )
        )

    def keep(self, order: RowSelection) -> None:
        pass


def decode(
    drafter: Drafter,
    verifier: ScriptedVerifier,
    max_len: int = 200,
    accept: Acceptance = EXACT,
    schedule: DraftSchedule = VERIFY_ALL,
) -> list[Decoded]:
    rules = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=max_len, min_len=0)
    first = torch.full((len(verifier.targets),), verifier.START)
    return draft_verify_accept(
        drafter, verifier, rules, first, accept=accept, schedule=schedule
    )


def check(decoded: list[Decoded], targets: list[list[int]], max_len: int = 200) -> None:
    """Tokens, scores and counters of a whole batch."""
    assert len(decoded) == len(targets)
    oracle = ScriptedVerifier(targets, VOCABULARY)
    for sentence, target in zip(decoded, targets, strict=True):
        # EOS is forced at position `max_len`
        expected = target if len(target) <= max_len else [*target[:max_len], EOS]
        assert sentence.tokens == expected
        log_probs = [
            float(
                oracle.logits_after(target, [EOS, *expected[:step]]).log_softmax(0)[
                    token
                ]
            )
            for step, token in enumerate(expected)
        ]
        torch.testing.assert_close(
            torch.tensor(sentence.log_probs), torch.tensor(log_probs)
        )
        stats = sentence.stats
        for done, drafted in zip(
            accumulate(stats.committed, initial=0), stats.drafted, strict=False
        ):
            assert done + drafted <= max_len, "no block reads behind the last position"
        assert (
            len(stats.drafted)
            == len(stats.accepted)
            == len(stats.committed)
            == stats.iterations
        )
        assert sum(stats.committed) == len(sentence.tokens)
        assert 1 <= stats.iterations <= len(sentence.tokens)
        counts = zip(stats.drafted, stats.accepted, stats.committed, strict=True)
        for number, (drafted, accepted, committed) in enumerate(counts, 1):
            assert 0 <= accepted <= drafted
            # the verifier adds one token of its own, unless an accepted EOS has ended the sentence
            assert committed - accepted == 1 or (
                number == stats.iterations and committed == accepted
            )
        assert stats.single_steps == stats.drafted.count(0)


class Foolish(DraftSchedule):
    """All, none or anything between, for each row; it checks what it is told."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def limits(self, outputs: Outputs) -> list[int]:
        room = outputs.room()
        return self._rng.choice(
            [room, [0] * len(room), [self._rng.randint(0, length) for length in room]]
        )

    def trim(self, draft: Draft) -> Draft:
        rows = draft.tokens.size(0)
        return self._rng.choice(
            [
                draft,
                draft.cut([0] * rows),
                draft.cut([self._rng.randint(0, 9) for _ in range(rows)]),
            ]
        )

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        assert draft.lengths in (None, outcome.drafted)
        assert draft.lengths_of(draft.tokens.tolist()) == outcome.drafted
        counts = zip(outcome.drafted, outcome.accepted, outcome.committed, strict=True)
        assert all(
            accepted <= drafted and committed - accepted in (0, 1)
            for drafted, accepted, committed in counts
        )


def schedule_of(name: str, seed: int) -> DraftSchedule:
    if name == "all":
        return VERIFY_ALL
    if name == "foolish":
        return Foolish(seed)
    return DraftLengths(
        Costs(
            seed % 3,
            seed % 7,
            DraftCost(4, 1.0, 0.1) if name == "learnt of a model" else None,
        )
    )


@examples(120)
@given(
    st.lists(targets_of_batch, min_size=1, max_size=3),
    st.integers(0, 10_000),
    st.sampled_from([0, 1, 3, 12, 30]),
    st.booleans(),
    st.sampled_from([200, 200, 7, 0]),
    st.sampled_from([EXACT, EXACT, Acceptance(TopBeta(1, 0.0))]),
    st.sampled_from(
        ["all", "all", "foolish", "foolish", "learnt", "learnt of a model"]
    ),
)
def test_any_draft_gives_the_verifiers_output(
    batches: list[list[list[int]]],
    seed: int,
    longest: int,
    known: bool,
    max_len: int,
    accept: Acceptance,
    name: str,
) -> None:
    """Whether the host knows how long drafts are or not, under a criterion that only the own choice meets, and with any
    schedule, which goes on from batch to batch."""
    schedule = schedule_of(name, seed)
    for targets in batches:
        verifier = ScriptedVerifier(targets, VOCABULARY)
        drafter = (OracleDrafter if known else OfUnknownLength)(
            targets, VOCABULARY, seed, longest
        )
        decoded = decode(drafter, verifier, max_len, accept, schedule)
        check(decoded, targets, max_len)
        assert verifier.rows_scored == sum(
            sentence.stats.iterations for sentence in decoded
        )
        assert verifier.calls == max(sentence.stats.iterations for sentence in decoded)


@pytest.mark.parametrize("drafter", [FixedDrafter(), FixedDrafter([7, 8, 9])])
def test_a_forced_prefix_costs_no_iteration_and_drafters_begin_behind_it(
    drafter: FixedDrafter,
) -> None:
    """As far as it is as long in all rows; the second row's prefix is shorter."""
    targets = [[5, 6, 7, 8, 9, 4, EOS], [4, 6, 5, EOS]]
    prefix = torch.tensor([[5, 6, 7], [4, 6, PAD]])
    rules = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=200, prefix=prefix)
    drafted = len(drafter.drafts) > 0
    verifier = ScriptedVerifier(targets, VOCABULARY)
    decoded = draft_verify_accept(
        drafter, verifier, rules, torch.full((2,), EOS), keep_drafts=True
    )
    assert [sentence.tokens for sentence in decoded] == targets
    first, second = (sentence.stats for sentence in decoded)
    assert (first.committed, second.committed) == (
        ([6, 1], [3, 1]) if drafted else ([3, 1, 1, 1, 1], [3, 1])
    )
    assert (first.accepted[0], second.accepted[0], first.drafted[0]) == (
        (3, 0, 3) if drafted else (0, 0, 0)
    )
    assert decoded[0].drafts is not None
    assert decoded[0].drafts[0].tolist() == ([7, 8, 9] if drafted else [])
