"""The edits of a correction: whole words, at the right place, and all together the correction."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_aggdec.text.edits import apply_edits, find_edits, to_utf16, widened
from fairseq_aggdec.text.results import Edit

TEXTS = st.text("ab ,'-\t\r\né\u0301你好😀👍🏽\u200d\ufe0f", max_size=15) | st.text(
    max_size=8
)


@pytest.mark.parametrize(
    ("source", "output", "edits", "wide"),
    [
        ("two brother.", "two brothers.", [(4, 7, "brothers")], None),
        ("I has go", "I have gone", [(2, 3, "have"), (6, 2, "gone")], None),
        ("I am agree", "I agree", [(2, 3, "")], None),
        ("dont go", "don't go", [(0, 4, "don't")], None),
        ("well known", "well-known", [(0, 10, "well-known")], None),
        ("cafe\u0301s is", "cafe\u0301 is", [(0, 6, "cafe\u0301")], None),
        ("我去学校", "我去了学校", [(2, 0, "了")], [(1, 1, "去了")]),
        ("a b", "a, b", [(1, 0, ",")], [(0, 1, "a,")]),
        (
            "I go to school now",
            "I go to the school now",
            [(8, 0, "the ")],
            [(8, 6, "the school")],
        ),
        ("(house)", "(the house)", [(1, 0, "the ")], [(1, 5, "the house")]),
        (
            "go home",
            "Then go home.",
            [(0, 0, "Then "), (7, 0, ".")],
            [(0, 2, "Then go"), (3, 4, "home.")],
        ),
        ("go", "I go.", [(0, 0, "I "), (2, 0, ".")], [(0, 2, "I go.")]),
        ("  ", " a ", [(1, 0, "a")], []),
    ],
)
def test_an_edit_is_of_whole_words(
    source: str,
    output: str,
    edits: list[tuple[int, int, str]],
    wide: list[tuple[int, int, str]] | None,
) -> None:
    found = find_edits(source, output)
    assert found == [Edit(*edit) for edit in edits]
    assert widened(source, found) == [
        Edit(*edit) for edit in (edits if wide is None else wide)
    ]


@settings(max_examples=500, deadline=None, derandomize=True)
@given(TEXTS, TEXTS)
def test_all_edits_together_are_the_correction(source: str, output: str) -> None:
    edits = find_edits(source, output)
    assert apply_edits(source, edits) == output
    wide = widened(source, edits)
    assert apply_edits(source, wide) == output or not source.strip()
    assert all(edit.length for edit in wide)
    for found in (edits, wide):
        assert all(
            before.offset + before.length <= after.offset
            for before, after in pairwise(found)
        )
    units, moved = source.encode("utf-16-le", "surrogatepass"), to_utf16(source, edits)
    assert [
        units[2 * edit.offset : 2 * (edit.offset + edit.length)] for edit in moved
    ] == [
        source[edit.offset : edit.offset + edit.length].encode(
            "utf-16-le", "surrogatepass"
        )
        for edit in edits
    ]
