"""Copies where there are some, a model's drafts elsewhere: through the loop, with a scripted model."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import BlockDrafter, BlockModel
from fairseq_aggdec.decoding.drafters.hybrid import HybridDrafter, TrustCopies
from fairseq_aggdec.decoding.drafters.input_guided import SourceCopyDrafter, SourceMatcher, draft_of
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.loop import draft_verify_accept
from fairseq_aggdec.decoding.outputs import Decoded, Outputs
from fairseq_aggdec.decoding.roles import BY_A_MODEL, VERIFY_ALL, Draft, Drafter, DraftSchedule, Kind, Match, Origin
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.scheduling.costs import Costs, DraftCost
from fairseq_aggdec.scheduling.goodput import Goodput
from tests.scripted_decoding import (
    EOS,
    PAD,
    UNK,
    OracleDrafter,
    ScriptedVerifier,
    examples,
    outputs_of,
    with_length_cap,
)

VOCABULARY = 20
A, B, C, D, E, F, G, X, Y = range(4, 13)
SOURCE, EDITED = [A, B, C, D, E, F, G], [A, B, X, D, E, F, G, EOS]

sentences = st.lists(st.integers(4, 11), max_size=14)
pairs = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5)


class PerfectDrafter(Drafter):
    """Knows the next tokens, `size` of them, and counts its calls."""

    def __init__(self, targets: Sequence[Sequence[int]], size: int) -> None:
        self.targets = [list(target) for target in targets]
        self.size = size
        self.calls = 0

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        self.calls += 1
        rows = [
            target[length - 1 : length - 1 + self.size]
            for target, length in zip(self.targets, outputs.known_lengths, strict=True)
        ]
        return draft_of(rows, [BY_A_MODEL] * len(rows), outputs.device)

    def keep(self, rows: Tensor) -> None:
        self.targets = [self.targets[row] for row in rows.tolist()]


def copier(sources: Sequence[Sequence[int]], **options: Any) -> SourceCopyDrafter:
    """Of sources without their EOS."""
    return SourceCopyDrafter(SourceMatcher([*source, EOS], EOS, persists=True, **options) for source in sources)


def hybrid(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], size: int = 4, **options: Any
) -> HybridDrafter:
    """With a model that knows the next tokens."""
    return HybridDrafter(copier(sources, **options), PerfectDrafter(targets, size), TrustCopies())


def decode(
    drafter: Drafter, targets: Sequence[Sequence[int]], max_len: int = 200, schedule: DraftSchedule = VERIFY_ALL
) -> list[Decoded]:
    rules = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=max_len, min_len=0)
    first = torch.full((len(targets),), EOS)
    verifier = ScriptedVerifier(targets, VOCABULARY)
    return draft_verify_accept(drafter, verifier, rules, first, schedule=schedule, keep_drafts=True)


def iterations(drafter: Drafter, targets: Sequence[Sequence[int]], **options: Any) -> list[int]:
    return [sentence.stats.iterations for sentence in decode(drafter, targets, **options)]


@examples(20)
@given(
    pairs,
    st.integers(0, 99),
    st.tuples(st.integers(1, 3), st.sampled_from([0, 0, 3]), st.sampled_from([0, 0, 4])),
    st.sampled_from([200, 200, 7]),
    st.booleans(),
)
def test_lossless(
    pairs: list[tuple[list[int], list[int]]], seed: int, options: tuple[int, int, int], max_len: int, learns: bool
) -> None:
    sources, outputs = (list(side) for side in zip(*pairs, strict=True))
    targets = [[*output, EOS] for output in outputs]
    goodput = Goodput(Costs(4, 1, seed % 2 == 0, DraftCost(5, 0.5, 0.1, 0.1)), drafter_asks=True)
    for _ in range(2):
        model = OracleDrafter(targets, VOCABULARY, seed, longest=5)
        copied = copier(sources, **dict(zip(("min_suffix", "max_suffix", "max_draft_len"), options, strict=True)))
        drafter = HybridDrafter(copied, model, goodput if learns else TrustCopies())
        for sentence, target in zip(
            decode(drafter, targets, max_len, goodput if learns else VERIFY_ALL), targets, strict=True
        ):
            assert sentence.tokens.tolist() == with_length_cap(target, max_len)


@examples(20)
@given(st.lists(st.tuples(sentences, st.integers(0, 13), st.booleans()), min_size=1, max_size=4), st.integers(1, 4))
def test_a_batch_and_its_sentences_one_by_one(rows: list[tuple[list[int], int, bool]], size: int) -> None:
    """The same drafts: no row's depend on whether others have a copy. One word of each sentence is replaced."""
    sources = [source for source, _, _ in rows]
    targets = [[*([X] if edited else []), *source[:at], Y, *source[at + 1 :], EOS] for source, at, edited in rows]
    together = decode(hybrid(sources, targets, size), targets)
    for source, target, sentence in zip(sources, targets, together, strict=True):
        [alone] = decode(hybrid([source], [target], size), [target])
        assert sentence.stats == alone.stats
        assert [draft.tolist() for draft in sentence.drafts or []] == [draft.tolist() for draft in alone.drafts or []]


def test_the_model_is_not_asked_where_the_source_is_copied() -> None:
    model = PerfectDrafter([[A, B, C, EOS]], 4)
    assert iterations(HybridDrafter(copier([[A, B, C]]), model, TrustCopies()), [[A, B, C, EOS]]) == [1]
    assert model.calls == 0


@pytest.mark.parametrize("rows", [1, 3])
def test_one_foreseen_token_saves_an_iteration(rows: int) -> None:
    """Behind an edit, X, copying needs D to find its place again. The model drafts D, and the rest is copied."""
    plain = SourceCopyDrafter([SourceMatcher([*SOURCE, EOS], EOS) for _ in range(rows)])
    assert iterations(plain, [EDITED] * rows) == [3] * rows
    model = PerfectDrafter([EDITED] * rows, 1)
    assert iterations(HybridDrafter(copier([SOURCE] * rows), model, TrustCopies()), [EDITED] * rows) == [2] * rows
    assert model.calls == 1


@pytest.mark.parametrize("rows", [1, 3])
def test_a_guess_where_there_is_no_model(rows: int) -> None:
    drafter = HybridDrafter(copier([SOURCE] * rows), NoDrafter(), TrustCopies())
    assert iterations(drafter, [EDITED] * rows) == [2] * rows


@pytest.mark.parametrize(("edited", "calls"), [(1, 0), (4, 1)])
def test_few_rows_without_a_copy_do_not_pay_for_a_costly_model(edited: int, calls: int) -> None:
    """They get a guess, which has never passed so far."""
    targets = [EDITED] * edited + [[*SOURCE, EOS]] * (4 - edited)
    model, goodput = PerfectDrafter(targets, 1), Goodput(Costs(24, 4, True, DraftCost(1, 4.0)), drafter_asks=True)
    for _ in range(50):
        goodput.rates.learn(Kind(Origin.COPY, Match.GUESS), 0, 5, 0)
    outputs = outputs_of([target[:3] for target in targets])
    goodput.longest(outputs_of([[]] * 4))
    goodput.longest(outputs)
    draft = HybridDrafter(copier([SOURCE] * 4), model, goodput).propose(outputs, [9] * 4)
    assert model.calls == calls
    assert draft.tokens.tolist() == [[D, E, F, G, EOS]] * 4
    own = Kind(Origin.REJOINED if calls else Origin.COPY, Match.GUESS)
    assert draft.kinds == [own] * edited + [Kind(Origin.COPY, Match.LONGER)] * (4 - edited)


class CatchingUp(BlockModel):
    """Reads every committed token once, in order, whenever it is asked."""

    max_positions = 1000

    def __init__(self, rows: int) -> None:
        self.read: list[list[int]] = [[] for _ in range(rows)]

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        for row, text in enumerate(texts):
            assert len(text) > len(self.read[row])
            assert text[: len(self.read[row])] == self.read[row], "what a row held it still holds"
            self.read[row] = list(text)
        return torch.full((len(texts), block_size), Y)

    score = draft

    def keep(self, rows: Tensor) -> None:
        self.read = [self.read[row] for row in rows.tolist()]


@examples(15)
@given(st.lists(st.tuples(sentences, st.lists(st.integers(0, 13), max_size=3)), min_size=1, max_size=4))
def test_a_model_that_was_not_asked_catches_up(rows: list[tuple[list[int], list[int]]]) -> None:
    sources = [source for source, _ in rows]
    targets = [[*(X if place in places else word for place, word in enumerate(source)), EOS] for source, places in rows]
    model = BlockDrafter(CatchingUp(len(rows)), 2, EOS)
    decoded = decode(HybridDrafter(copier(sources), model, TrustCopies()), targets)
    assert [sentence.tokens.tolist() for sentence in decoded] == targets


def learned(
    source: list[int], target: list[int], known: list[int], rows: int, batches: int = 60
) -> tuple[list[int], int]:
    """How many iterations each of many equal batches takes, where the model takes `known` for the answer, and how often
    it is asked in the last half of them."""
    goodput, found, calls = Goodput(Costs(24, 4, True, DraftCost(4, 3.0)), drafter_asks=True), [], []
    for _ in range(batches):
        model = PerfectDrafter([known] * rows, 4)
        drafter = HybridDrafter(copier([source] * rows), model, goodput)
        found.append(max(iterations(drafter, [target] * rows, schedule=goodput)))
        calls.append(model.calls)
    return found, sum(calls[batches // 2 :])


@pytest.mark.parametrize("rows", [1, 4, 16])
def test_copies_that_never_pass_give_way_to_the_model(rows: int) -> None:
    """As in translation: source and output share their punctuation."""
    target = [X, A, Y, C, X, X, E, Y, EOS]
    found, _ = learned([A, B, C, D, E], target, target, rows)
    assert found[0] > 3
    assert sum(found[30:]) / 30 < 3


@pytest.mark.parametrize("rows", [1, 4, 16])
def test_a_model_that_is_never_right_gives_way_to_copies(rows: int) -> None:
    found, calls = learned(SOURCE, EDITED, [Y] * 20, rows)
    assert sum(found[30:]) / 30 < 2.5
    assert calls < 15


@pytest.mark.parametrize(("expected", "draft"), [(1.0, [D, Y]), (3.0, [D, E, F, G, EOS])])
def test_the_better_of_a_models_draft_and_its_way_back_to_the_source(expected: float, draft: list[int]) -> None:
    """Behind A B X the model drafts D Y, and D stands in the source."""

    class Estimated(TrustCopies):
        def expected(self, row: int, kind: Kind, length: int) -> float:
            return {Origin.COPY: 0.0, Origin.MODEL: 2.0, Origin.REJOINED: expected}[kind.origin]

    drafter = HybridDrafter(copier([SOURCE]), PerfectDrafter([[A, B, X, D, Y, Y]], 2), Estimated())
    assert drafter.propose(outputs_of([[A, B, X]]), [9]).tokens.tolist() == [draft]


def test_kinds_tell_copies_guesses_and_the_model_apart() -> None:
    sources, targets = [[A, B, C], [D, E, F], [A, B]], [[A, X, C, EOS], [Y, G, EOS], [A, B, EOS]]
    outputs = outputs_of([[A, X], [Y], [A]])
    matches = [Match.GUESS, Match.GUESS, Match.TWO_TOKENS]
    copies = [Kind(Origin.COPY, match) for match in matches]
    drafter = hybrid(sources, targets, 2)
    assert drafter.propose(outputs_of([[], [], []]), [9] * 3).kinds == [Kind(Origin.COPY, Match.START)] * 3
    assert drafter.propose(outputs, [9] * 3).kinds == [
        Kind(Origin.REJOINED, Match.GUESS),
        Kind(Origin.MODEL, Match.GUESS),
        copies[2],
    ]
    assert HybridDrafter(copier(sources), NoDrafter(), TrustCopies()).propose(outputs, [9] * 3).kinds == copies
