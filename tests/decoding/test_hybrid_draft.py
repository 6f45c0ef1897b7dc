"""Copies where there are some, a model's drafts elsewhere: through the loop, with a scripted model."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.block_draft import BlockDrafter
from fairseq_aggdec.decoding.copy_trust import CopyTrust
from fairseq_aggdec.decoding.draft_width import DraftWidth
from fairseq_aggdec.decoding.hybrid_draft import MODELLED, Copier, HybridDrafter
from fairseq_aggdec.decoding.input_guided import FOREIGN, GUESS, SourceCopyDrafter
from fairseq_aggdec.decoding.loop import Drafter, NoDrafter, draft_verify_accept
from fairseq_aggdec.decoding.outputs import Decoded
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.single_source import SingleSourceDrafter, SourcesDrafter
from tests.scripted_decoding import EOS, PAD, UNK, OracleDrafter, ScriptedVerifier, examples, with_length_cap

VOCABULARY = 20
A, B, C, D, E, F, G, X, Y = range(4, 13)

sentences = st.lists(st.integers(4, 11), max_size=14)


class CountingDrafter(OracleDrafter):
    """Counts its calls, and notes the rows that it is asked for."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.calls = 0

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        self.calls += 1
        assert tokens.size(0) == len(self.targets)
        draft, draft_lengths = super().propose(tokens, lengths, lengths_host)
        return draft[:, : self.block_size], draft_lengths.clamp(max=self.block_size)


class PerfectDrafter(CountingDrafter):
    """Knows the next `block_size` tokens."""

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        self.calls += 1
        assert self.block_size is not None
        rows = [
            target[length - 1 : length - 1 + self.block_size]
            for target, length in zip(self.targets, lengths.tolist(), strict=True)
        ]
        draft = torch.full((len(rows), self.block_size), EOS)
        for row, words in enumerate(rows):
            draft[row, : len(words)] = torch.tensor(words)
        return draft, torch.tensor([len(words) for words in rows])


def copier(sources: Sequence[Sequence[int]], **options: Any) -> Copier:
    """Of sources without their EOS; the one for single sentences where there is one."""
    if len(sources) == 1:
        return SingleSourceDrafter([*sources[0], EOS], EOS, persists=True, **options)
    return batched(sources, **options)


def batched(sources: Sequence[Sequence[int]], **options: Any) -> Copier:
    """Those for batches, also for one sentence: lists where there are several, as on a CPU."""
    if len(sources) > 1:
        return SourcesDrafter([[*sentence, EOS] for sentence in sources], EOS, persists=True, **options)
    width = max(map(len, sources)) + 1
    source = torch.full((len(sources), width), FOREIGN)
    for row, sentence in enumerate(sources):
        source[row, : len(sentence) + 1] = torch.tensor([*sentence, EOS])
    lengths = torch.tensor([len(sentence) + 1 for sentence in sources])
    return SourceCopyDrafter(source, lengths, EOS, persists=True, **options)


def decode(
    drafter: Drafter, targets: Sequence[Sequence[int]], max_len: int = 200, widths: DraftWidth | None = None
) -> list[Decoded]:
    rules = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=max_len, min_len=0)
    verifier = ScriptedVerifier(targets, VOCABULARY)
    first = torch.full((len(targets),), EOS)
    return draft_verify_accept(drafter, verifier, rules, first, True, widths=widths)


def iterations(drafter: Drafter, targets: Sequence[Sequence[int]]) -> list[int]:
    return [sentence.stats.iterations for sentence in decode(drafter, targets)]


@examples(300)
@given(
    st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5), st.integers(0, 99), st.integers(1, 5),
    st.tuples(st.integers(1, 3), st.sampled_from([0, 0, 3]), st.sampled_from([0, 0, 4])), st.sampled_from([0.0, 0.5]),
    st.sampled_from([200, 200, 7]), st.booleans(),
)  # fmt: skip
def test_lossless(
    pairs: list[tuple[list[int], list[int]]], seed: int, block_size: int, options: tuple[int, int, int],
    least_share: float, max_len: int, shortened: bool,
) -> None:  # fmt: skip
    sources, outputs = (list(side) for side in zip(*pairs, strict=True))
    targets = [[*output, EOS] for output in outputs]
    model = CountingDrafter(targets, VOCABULARY, seed, longest=5, block_size=block_size)
    widths = DraftWidth(4) if shortened else None
    limits = dict(zip(("min_suffix", "max_suffix", "max_draft_len"), options, strict=True))
    decoded = decode(HybridDrafter(copier(sources, **limits), model, least_share), targets, max_len, widths)
    for sentence, target in zip(decoded, targets, strict=True):
        assert sentence.tokens.tolist() == with_length_cap(target, max_len)


@examples(150)
@given(st.lists(st.tuples(sentences, st.integers(0, 13), st.booleans()), min_size=1, max_size=4), st.integers(1, 4))
def test_a_batch_and_its_sentences_one_by_one(rows: list[tuple[list[int], int, bool]], block_size: int) -> None:
    """The same drafts: no row's depend on whether others have a copy. One word of each sentence is replaced."""
    sources = [source for source, _, _ in rows]
    targets = [[*([X] if edited else []), *source[:at], Y, *source[at + 1 :], EOS] for source, at, edited in rows]
    model = PerfectDrafter(targets, VOCABULARY, 0, block_size=block_size)
    together = decode(HybridDrafter(batched(sources), model), targets)
    for source, target, sentence in zip(sources, targets, together, strict=True):
        model = PerfectDrafter([target], VOCABULARY, 0, block_size=block_size)
        [alone] = decode(HybridDrafter(copier([source]), model), [target])
        assert sentence.stats == alone.stats
        assert [draft.tolist() for draft in sentence.drafts or []] == [draft.tolist() for draft in alone.drafts or []]


def test_the_model_is_not_asked_where_the_source_is_copied() -> None:
    model = CountingDrafter([[A, B, C, EOS]], VOCABULARY, 0, block_size=4)
    assert iterations(HybridDrafter(copier([[A, B, C]]), model), [[A, B, C, EOS]]) == [1]
    assert model.calls == 0


@pytest.mark.parametrize("rows", [1, 3])
def test_one_foreseen_token_saves_an_iteration(rows: int) -> None:
    """Behind an edit, X, copying needs D to find its place again. The model drafts D, and the rest is copied."""
    source, target = [A, B, C, D, E, F, G], [A, B, X, D, E, F, G, EOS]
    plain = SourceCopyDrafter(torch.tensor([[*source, EOS]] * rows), torch.tensor([8] * rows), EOS)
    assert iterations(plain, [target] * rows) == [3] * rows
    model = PerfectDrafter([target] * rows, VOCABULARY, 0, block_size=1)
    assert iterations(HybridDrafter(copier([source] * rows), model), [target] * rows) == [2] * rows
    assert model.calls == 1


def test_a_useless_model_costs_no_iteration() -> None:
    source, target = [A, B, C, D, E, F, G], [A, B, X, D, E, F, G, EOS]
    model = PerfectDrafter([[Y] * 20], VOCABULARY, 0, block_size=3)
    assert iterations(HybridDrafter(copier([source]), model), [target]) == [3]


def test_short_matches_need_the_model_above_a_shortest_suffix() -> None:
    """B alone says little here: its copy is wrong, and the model is right."""
    source, target = [A, B, C], [B, Y, G, EOS]
    for shortest, expected in ((1, 3), (2, 2)):
        model = PerfectDrafter([target], VOCABULARY, 0, block_size=2)
        assert iterations(HybridDrafter(copier([source], min_suffix=shortest), model), [target]) == [expected]


@pytest.mark.parametrize("rows", [1, 3])
def test_a_guess_where_the_model_has_no_draft(rows: int) -> None:
    """Nor is there a model needed."""
    source, target = [A, B, C, D, E, F, G], [A, B, X, D, E, F, G, EOS]
    for hybrid in (HybridDrafter(copier([source] * rows), NoDrafter()), copier([source] * rows)):
        assert iterations(hybrid, [target] * rows) == [2] * rows


def test_few_rows_without_a_copy_do_not_pay_for_a_costly_model() -> None:
    source = [A, B, C, D, E, F, G]
    targets = [[A, B, X, D, E, F, G, EOS], *[[*source, EOS]] * 3]
    model = PerfectDrafter(targets, VOCABULARY, 0, block_size=1)
    hybrid = HybridDrafter(batched([source] * 4), model, least_share=0.3)
    read = torch.tensor([[EOS, A, B, X], *[[EOS, A, B, C]] * 3])
    lengths = torch.tensor([4] * 4)
    _, draft_lengths = hybrid.propose(read, lengths, [4] * 4)
    assert draft_lengths.tolist() == [5, 5, 5, 5]  # the first by a guess
    assert model.calls == 0
    read[1] = read[0]
    model.targets[1] = model.targets[0]
    draft, draft_lengths = hybrid.propose(read, lengths, [4] * 4)
    assert draft_lengths.tolist() == [5, 5, 5, 5]
    assert draft.tolist() == [[D, E, F, G, EOS]] * 4
    assert model.calls == 1


class CatchingUp:
    """A `block_draft.BlockModel` that reads every committed token once, in order, whenever it is asked."""

    max_positions = 1000

    def __init__(self, rows: int) -> None:
        self.read: list[list[int]] = [[] for _ in range(rows)]

    def draft(self, tokens: Tensor, lengths: Tensor, block_size: int, lengths_host: Sequence[int]) -> Tensor:
        assert self.unread(lengths_host) > 0
        for row, length in enumerate(lengths_host):
            assert tokens[row, : len(self.read[row])].tolist() == self.read[row], "what a row held it still holds"
            self.read[row] = tokens[row, :length].tolist()
        return torch.full((tokens.size(0), block_size), Y)

    score = draft

    def unread(self, lengths_host: Sequence[int]) -> int:
        return sum(length - len(read) for length, read in zip(lengths_host, self.read, strict=True))

    def keep(self, rows: Tensor) -> None:
        self.read = [self.read[row] for row in rows.tolist()]


@examples(60)
@given(st.lists(st.tuples(sentences, st.lists(st.integers(0, 13), max_size=3)), min_size=1, max_size=4))
def test_a_model_that_was_not_asked_catches_up(rows: list[tuple[list[int], list[int]]]) -> None:
    sources = [source for source, _ in rows]
    targets = [[*(X if place in places else word for place, word in enumerate(source)), EOS] for source, places in rows]
    model = CatchingUp(len(rows))
    decoded = decode(HybridDrafter(copier(sources), BlockDrafter(model, 2, EOS)), targets)
    assert [sentence.tokens.tolist() for sentence in decoded] == targets


def test_the_loop_may_lower_the_models_blocks() -> None:
    model = PerfectDrafter([[A, EOS]], VOCABULARY, 0, block_size=4)
    hybrid = HybridDrafter(copier([[A]]), model)
    assert hybrid.block_size == 4
    hybrid.block_size = 2
    assert model.block_size == 2


@examples(60)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=4), st.integers(0, 99), st.booleans())
def test_lossless_whatever_is_trusted(pairs: list[tuple[list[int], list[int]]], seed: int, shortened: bool) -> None:
    sources, outputs = (list(side) for side in zip(*pairs, strict=True))
    targets = [[*output, EOS] for output in outputs]
    trust = CopyTrust(0.2)
    for _ in range(3):
        model = CountingDrafter(targets, VOCABULARY, seed, longest=5, block_size=4)
        hybrid = HybridDrafter(copier(sources), model, 0.3, trust)
        decoded = decode(hybrid, targets, widths=DraftWidth(4) if shortened else None)
        assert [sentence.tokens.tolist() for sentence in decoded] == targets


@pytest.mark.parametrize("rows", [1, 4])
def test_copies_that_never_pass_give_way_to_the_model(rows: int) -> None:
    """As in translation: source and output share their punctuation."""
    source, target = [A, B, C, D, E], [X, A, Y, C, X, X, E, Y, EOS]
    trust, found = CopyTrust(), []
    for _ in range(60):
        model = PerfectDrafter([target] * rows, VOCABULARY, 0, block_size=4)
        found.append(iterations(HybridDrafter(copier([source] * rows), model, trust=trust), [target] * rows)[0])
    assert found[0] > 4
    assert sum(found[30:]) / 30 < 3


def test_kinds_tell_copies_guesses_and_the_model_apart() -> None:
    """So that a batch does not cut sure copies short for the sake of guesses that are seldom right."""
    targets = [[A, X, C, EOS], [Y, G, EOS], [A, B, EOS]]
    drafter = HybridDrafter(
        copier([[A, B, C], [D, E, F], [A, B]]), PerfectDrafter(targets, VOCABULARY, 0, block_size=2)
    )
    tokens = torch.tensor([[EOS, A, X], [EOS, Y, 0], [EOS, A, 0]])
    drafter.propose(tokens[:, :1], torch.tensor([1, 1, 1]))
    assert drafter.kinds() == [0, 0, 0]
    drafter.propose(tokens, torch.tensor([3, 2, 2]))
    assert drafter.kinds() == [MODELLED, MODELLED, 2]
    without = HybridDrafter(copier([[A, B, C], [D, E, F], [A, B]]), NoDrafter())
    without.propose(tokens, torch.tensor([3, 2, 2]))
    assert without.kinds() == [GUESS, GUESS, 2]
