"""The edits of a correction: whole words, at the right place, and all together the correction."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_aggdec.text.edits import (
    apply_edits,
    find_edits,
    marked,
    to_utf16,
    widened,
)
from fairseq_aggdec.text.results import Edit, Result

TEXTS = st.text("ab ,'-\t\r\né\u0301你好😀👍🏽\u200d\ufe0f", max_size=15) | st.text(
    max_size=8
)


@pytest.mark.parametrize(
    "source, output, edits, wide",
    [
        ("two brother.", "two brothers.", "two [-brother-]{+brothers+}.", None),
        ("I has go", "I have gone", "I [-has-]{+have+} [-go-]{+gone+}", None),
        ("I am agree", "I agree", "I [-am -]agree", None),
        ("dont go", "don't go", "[-dont-]{+don't+} go", None),
        ("well known", "well-known", "[-well known-]{+well-known+}", None),
        ("cafe\u0301s is", "cafe\u0301 is", "[-cafe\u0301s-]{+cafe\u0301+} is", None),
        ("我去学校", "我去了学校", "我去{+了+}学校", "我[-去-]{+去了+}学校"),
        ("a b", "a, b", "a{+,+} b", "[-a-]{+a,+} b"),
        ("to school", "to the school", "to {+the +}school", "to [-school-]{+the school+}"),
        ("(house)", "(the house)", "({+the +}house)", "([-house-]{+the house+})"),
        ("go on", "Then go on.", "{+Then +}go on{+.+}", "[-go-]{+Then go+} [-on-]{+on.+}"),
        ("go", "I go.", "{+I +}go{+.+}", "[-go-]{+I go.+}"),
        ("  ", " a ", " {+a+} ", "  "),
    ],
)  # fmt: skip
def test_an_edit_is_of_whole_words(
    source: str, output: str, edits: str, wide: str | None
) -> None:
    """`wide`: where an insertion takes a word beside it with it."""
    found = find_edits(source, output)
    assert marked(Result(source, output, [], found)) == edits
    extended = widened(source, found)
    assert marked(Result(source, output, [], extended)) == (wide or edits)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(TEXTS, TEXTS)
def test_all_edits_together_are_the_correction(source: str, output: str) -> None:
    edits = find_edits(source, output)
    assert apply_edits(source, edits) == output
    wide = widened(source, edits)
    assert apply_edits(source, wide) == output or not source.strip()
    assert all(edit.length for edit in wide)
    for found in (edits, wide):
        assert all(one.end <= other.offset for one, other in pairwise(found))
    assert [changed(source, edit) for edit in edits] == [
        in_units(source, edit) for edit in to_utf16(source, edits)
    ]


def changed(source: str, edit: Edit) -> bytes:
    return source[edit.offset : edit.end].encode("utf-16-le", "surrogatepass")


def in_units(source: str, edit: Edit) -> bytes:
    """What an edit changes whose places are counted in UTF-16 code units."""
    units = source.encode("utf-16-le", "surrogatepass")
    return units[2 * edit.offset : 2 * edit.end]
