"""Whatever of whatever drafts is verified, the verifier's own output comes out."""

import random

import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.loop import draft_verify_accept
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import BY_A_MODEL, Draft, DraftSchedule, Outcome
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.scheduling.costs import Costs, DraftCost
from fairseq_aggdec.scheduling.goodput import Goodput
from tests.scripted_decoding import (
    EOS,
    PAD,
    UNK,
    OfUnknownLength,
    OracleDrafter,
    ScriptedVerifier,
    examples,
    with_length_cap,
)

VOCABULARY = 12
targets_of_batch = st.lists(
    st.lists(st.integers(UNK, VOCABULARY - 1), max_size=20).map(lambda s: [*s, EOS]), min_size=1, max_size=5
)


class Foolish(DraftSchedule):
    """All, none or anything between, for each row; it checks what it is told."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def longest(self, outputs: Outputs) -> list[int]:
        room = outputs.room()
        return self._rng.choice([room, [0] * len(room), [self._rng.randint(0, length) for length in room]])

    def trim(self, draft: Draft) -> Draft:
        rows = draft.lengths.size(0)
        return self._rng.choice(
            [draft, draft.cut([0] * rows), draft.cut([self._rng.randint(0, 9) for _ in range(rows)])]
        )

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        assert draft.known in (None, outcome.drafted)
        assert draft.lengths.tolist() == outcome.drafted
        counts = zip(outcome.drafted, outcome.accepted, outcome.committed, strict=True)
        assert all(accepted <= drafted and committed - accepted in (0, 1) for drafted, accepted, committed in counts)


def schedule_of(name: str, seed: int) -> DraftSchedule:
    if name == "foolish":
        return Foolish(seed)
    model = DraftCost(4, 1.0, 0.1, 0.1, start=2.0, rereads=seed % 3 == 0) if name == "goodput of a model" else None
    return Goodput(Costs(seed % 7, seed % 3, seed % 2 == 0, model), BY_A_MODEL)


@examples(60)
@given(
    st.lists(targets_of_batch, min_size=1, max_size=3),
    st.integers(0, 10_000),
    st.sampled_from([1, 3, 12, 30]),
    st.booleans(),
    st.sampled_from([200, 200, 7, 0]),
    st.sampled_from(["foolish", "foolish", "goodput", "goodput of a model"]),
)
def test_any_schedule_gives_the_verifiers_output(
    batches: list[list[list[int]]], seed: int, longest: int, known: bool, max_len: int, name: str
) -> None:
    """A schedule goes on from batch to batch."""
    schedule = schedule_of(name, seed)
    rules = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=max_len, min_len=0)
    for targets in batches:
        drafter = (OracleDrafter if known else OfUnknownLength)(targets, VOCABULARY, seed, longest)
        verifier = ScriptedVerifier(targets, VOCABULARY)
        first = torch.full((len(targets),), EOS)
        decoded = draft_verify_accept(drafter, verifier, rules, first, schedule=schedule)
        assert [sentence.tokens.tolist() for sentence in decoded] == [with_length_cap(t, max_len) for t in targets]
