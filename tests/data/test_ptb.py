import pytest

from fairseq_aggdec.data.ptb import detokenise


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("I do n't know . ", "I don't know."),
        ("They ca n't see it 's John 's .", "They can't see it's John's."),
        ("It called `` ballast water '' .", 'It called "ballast water".'),
        ("Trees ( and so on ) are good !", "Trees (and so on) are good!"),
        ("He / she is here : there .", "He/she is here: there."),
        ("a 50 % share of $ 20", "a 50% share of $20"),
    ],
)
def test_running_text(tokens: str, text: str) -> None:
    assert detokenise(tokens) == text
