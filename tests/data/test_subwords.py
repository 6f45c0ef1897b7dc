from pathlib import Path

from fairseq_aggdec.data.subwords import learn_codes, moses, subword_nmt

TEXT = ["I don 't know the well-known lower tower .", "lower lower tower tower"] * 20


def test_moses_keeps_dashes_and_characters() -> None:
    assert moses().encode('I don\'t know the well-known "A & B".') == 'I don \'t know the well-known " A & B " .'


def test_codes_have_the_asked_size_and_round_trip(tmp_path: Path) -> None:
    codes = tmp_path / "codes"
    learn_codes(TEXT, codes, symbols=40)
    encoder = subword_nmt(codes)
    encoded = [encoder.encode(line) for line in TEXT]
    assert [encoder.decode(line) for line in encoded] == TEXT
    assert len({token for line in encoded for token in line.split()}) <= 40
    assert "lower" in encoded[1].split()  # frequent words are one subword
