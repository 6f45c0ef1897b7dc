"""`--tokenizer as_written` and what it knows about whose answer it decodes."""

from __future__ import annotations

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.text.tokenizer import AsWrittenTokenizer


def test_nobody_gets_the_characters_of_another_line() -> None:
    tokenizer = AsWrittenTokenizer()
    tokenizer.encode("One €.")
    with pytest.raises(AggdecError, match=r"--tokenizer as_written: only aggdec decode and fairseq-interactive with"):
        tokenizer.decode("One $ .")
