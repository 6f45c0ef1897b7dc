"""What the planner foresees: passes are saved by what a drafter has said."""

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.drafted_rows import ReturningModel, RowDrafter
from fairseq_aggdec.decoding.beam.loop import aggressive_beam_search
from fairseq_aggdec.decoding.beam.planner import FixedBudget, LookAhead
from fairseq_aggdec.decoding.beam.search import BeamOptions
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Order
from fairseq_aggdec.decoding.top_k import best_entries
from tests.support.random_models import dictionary
from tests.support.scripted_beams import Table, TableVerifier

WORDS = dictionary(30)
SIZE, LONGEST = 4, 30


class Follower(Table):
    """Wants a text, whatever stands before: at each position its word by far, and others by chance."""

    TEXT = tuple(range(5, 25))

    def logits(self, sentence: int, prefix: Sequence[int]) -> Tensor:
        logits = super().logits(sentence, prefix).clone()
        place = len(prefix) - 1
        logits[self.TEXT[place] if place < len(self.TEXT) else WORDS.eos()] += 9.0
        return logits


class Knowing(ReturningModel):
    """A drafter that says the text, and remembers what it was asked."""

    max_positions = 64
    reads_wait = False

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.read = 0

    def entries(self, texts: Sequence[Sequence[int]], block_size: int, count: int) -> tuple[Tensor, Tensor]:
        known_lengths = [len(text) for text in texts]
        self.asked.append(known_lengths)
        assert self.read <= min(known_lengths)
        self.read = min(known_lengths)
        logits = torch.randn(len(known_lengths), block_size, len(WORDS), generator=torch.Generator().manual_seed(1))
        for row, length in enumerate(known_lengths):
            for place in range(block_size):
                position = length - 1 + place
                logits[row, place, Follower.TEXT[position] if position < 20 else WORDS.eos()] += 9.0
        return best_entries(logits.log_softmax(dim=-1).flatten(0, 1), count)

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        raise NotImplementedError

    def choose(
        self, texts: Sequence[Sequence[int]], block_size: int, rules: SearchRules, temperature: float
    ) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def go_back(self, lengths: Sequence[int]) -> None:
        self.read = min(self.read, *lengths, 10**6)

    def keep(self, order: Order) -> None:
        pass


def test_a_drafter_that_knows_the_text_saves_passes_and_is_not_asked_in_each() -> None:
    model = Knowing()
    planner = LookAhead(FixedBudget(40), drafter=RowDrafter(model, 10, SIZE + 2))
    rules = SearchRules(WORDS.pad(), WORDS.unk(), WORDS.eos(), LONGEST)
    options = BeamOptions(SIZE, WORDS.eos(), LONGEST, len(WORDS))
    verifier = TableVerifier(Follower(WORDS, 3, 60, 100_000), [4, 5])
    found = aggressive_beam_search(verifier, rules, options, planner, torch.full((2,), WORDS.eos()))
    assert found[0][0][0].tokens == [*Follower.TEXT, WORDS.eos()]
    taken = len(verifier.sizes)
    assert taken < 12
    assert len(model.asked) < taken
