"""Running text out of tokens; tests/scripts/test_rewriting.py holds the tokens of Ukrainian."""

import pytest
from experiments.ptb import detokenise


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("I do n't know . ", "I don't know."),
        ("It called `` ballast water '' .", 'It called "ballast water".'),
        ("Trees ( and so on ) are good !", "Trees (and so on) are good!"),
        ("He / she is here : there .", "He/she is here: there."),
    ],
)
def test_running_text(tokens: str, text: str) -> None:
    assert detokenise(tokens) == text
