"""`--tokenizer as_written` and what it knows about whose answer it decodes."""

from __future__ import annotations

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.writing.tokenizer import AsWrittenTokenizer


def test_answers_are_decoded_in_the_order_of_the_lines() -> None:
    """Whatever the order they were found in; a line that was left out, and several hypotheses, shift nothing."""
    tokenizer = AsWrittenTokenizer()
    lines = ["One €.", "Two £.", "Three ¥."]
    assert [tokenizer.encode(line) for line in lines] == ["One $ .", "Two $ .", "Three $ ."]
    tokenizer.answered(2, lines[2], 2)
    tokenizer.answered(0, lines[0], 1)
    assert [tokenizer.decode(answer) for answer in ("One $ .", "Three $ .", "3 $ .")] == ["One €.", "Three ¥.", "3 ¥."]


def test_nobody_gets_the_characters_of_another_line() -> None:
    tokenizer = AsWrittenTokenizer()
    tokenizer.encode("One €.")
    with pytest.raises(AggdecError, match=r"--tokenizer as_written: only aggdec decode and fairseq-interactive with"):
        tokenizer.decode("One $ .")
