"""Options of copying that make no sense, and what becomes of the others."""

from typing import Any

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import CopyLimits
from fairseq_aggdec.tasks.copying_options import CopyingOptions, check_copying_options, copy_limits_of


def test_each_option_arrives() -> None:
    options = CopyingOptions(max_draft_len=9, min_suffix=2, max_suffix=4)
    check_copying_options(options)
    assert copy_limits_of(options) == CopyLimits(min_suffix=2, max_suffix=4, max_draft_len=9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_suffix": 0}, "--min-suffix 0: must be at least 1"),
        ({"min_suffix": 3, "max_suffix": 2}, "--max-suffix 2 is below --min-suffix 3"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(AggdecError, match=message):
        check_copying_options(CopyingOptions(**options))
