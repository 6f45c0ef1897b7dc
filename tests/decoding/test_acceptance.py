"""Acceptance against the plain definition."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding import acceptance
from tests.scripted_decoding import examples

rows = st.integers(1, 4).flatmap(
    lambda batch: st.integers(0, 6).flatmap(
        lambda width: st.tuples(
            st.lists(st.lists(st.integers(0, 1), min_size=width, max_size=width), min_size=batch, max_size=batch),
            st.lists(st.integers(0, width), min_size=batch, max_size=batch),
            st.lists(
                st.lists(st.integers(0, 1), min_size=width + 1, max_size=width + 1), min_size=batch, max_size=batch
            ),
        )
    )
)


@examples(200)
@given(rows)
def test_exact_counts_the_agreed_prefix(case: tuple[list[list[int]], list[int], list[list[int]]]) -> None:
    draft, lengths, chosen = case
    expected = []
    for drafted, length, wanted in zip(draft, lengths, chosen, strict=True):
        count = 0
        while count < length and drafted[count] == wanted[count]:
            count += 1
        expected.append(count)
    shaped = torch.tensor(draft, dtype=torch.long).view(len(draft), -1)
    assert acceptance.exact(shaped, torch.tensor(lengths), torch.tensor(chosen)).tolist() == expected
