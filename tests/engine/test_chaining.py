"""The walk through a block's candidates against one that looks at a single token at a time."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.engine.transition_tables import chained
from tests.scripted_decoding import examples


@examples(60)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.integers(0, 1000))
def test_each_token_is_the_best_after_the_one_before(rows: int, width: int, count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    candidates = torch.randint(100, (rows, width, count), generator=generator)
    scores = torch.randn(rows, width, count, generator=generator)
    transitions = torch.randn(rows, width, count, count, generator=generator)
    expected = []
    for row in range(rows):
        before, tokens = 0, []
        for position in range(width):
            values = [float(scores[row, position, j] + transitions[row, position, before, j]) for j in range(count)]
            before = values.index(max(values))
            tokens.append(int(candidates[row, position, before]))
        expected.append(tokens)
    assert chained(candidates, scores, transitions).tolist() == expected


def test_a_neighbour_overrules_a_better_score() -> None:
    """Two translations, "a b" and "c d", of nearly the same probability: chosen each for itself the draft is "a d"."""
    candidates = torch.tensor([[[1, 3], [4, 2]]])  # a c, d b
    scores = torch.tensor([[[1.0, 0.9], [1.0, 0.9]]])
    transitions = torch.zeros(1, 2, 2, 2)
    assert chained(candidates, scores, transitions).tolist() == [[1, 4]]
    transitions[0, 1, 0, 1] = 0.5  # b after a
    assert chained(candidates, scores, transitions).tolist() == [[1, 2]]
