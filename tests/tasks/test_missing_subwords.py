"""fairseq-interactive on text without the subwords that its model was trained with."""

import logging
from argparse import Namespace

import pytest

import fairseq_aggdec
from fairseq_aggdec.tasks.loading import load
from fairseq_aggdec.text.shipped import SHIPPED


@pytest.mark.parametrize(("bpe", "warnings"), [(None, 1), ("subword_nmt", 0)])
def test_lines_of_unknown_words_are_pointed_out_once(
    bpe: str | None, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    fairseq_aggdec.register()
    folder = SHIPPED["mt"].folder
    task, _ = load(str(folder / "model.pt"), str(folder), "en", "de")
    encoder = task.build_bpe(Namespace(bpe=bpe, bpe_codes=str(folder / "bpecodes"), bpe_separator="@@"))
    with caplog.at_level(logging.WARNING):
        for lines in (["unbelievable bicycles"], ["Yes ."], ["unbelievable bicycles"]):
            task.get_interactive_tokens_and_lengths(lines, encoder.encode if encoder else lambda line: line)
    assert caplog.text.count("name the subwords") == warnings
    assert len(caplog.records) == warnings
