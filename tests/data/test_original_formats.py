"""Readers of public corpora, on a few lines of each format."""

import io

import pytest

from fairseq_aggdec.data.original_formats import READERS, read_story
from fairseq_aggdec.errors import AggdecError


def read(name: str, *texts: str, sides: tuple[str, ...] = ("src", "tgt")) -> list[tuple[str, ...]]:
    return list(READERS[name]([io.BytesIO(text.encode()) for text in texts], sides))


def test_lines_of_several_files() -> None:
    assert read("lines", "a\nb\n", "x\ny\n") == [("a", "x"), ("b", "y")]
    with pytest.raises(AggdecError, match="line 2 is missing on the side tgt"):
        read("lines", "a\nb\n", "x\n")


def test_sgm() -> None:
    source = '<srcset setid="x"><doc>\n<p>\n<seg id="1">A &amp; B</seg>\n<seg id="2"> two\n lines </seg>\n</p></doc>'
    target = '<refset><hl><seg id="1">eins</seg></hl><seg id="2">zwei</seg></refset>'
    assert read("sgm", source, target) == [("A & B", "eins"), ("two lines", "zwei")]
    with pytest.raises(AggdecError, match="src: 2, tgt: 0"):
        read("sgm", source, "<refset></refset>")


def test_tmx() -> None:
    unit = (
        '<tu><tuv xml:lang="EN"><seg>a <b>bold</b> word</seg></tuv><tuv xml:lang="ro"><seg>un cuvânt</seg></tuv></tu>'
    )
    alone = '<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu>'
    assert read("tmx", f"<tmx><body>{unit}{alone}</body></tmx>", sides=("ro", "en")) == [("un cuvânt", "a bold word")]


def test_nlpcc_makes_a_pair_of_each_correction() -> None:
    text = "1\t2\t我很喜欢他\t我很爱他\t我喜欢他\n2\t0\t好\n"
    assert read("nlpcc", text) == [("我很喜欢他", "我很爱他"), ("我很喜欢他", "我喜欢他"), ("好", "好")]
    with pytest.raises(AggdecError, match="line 1 has 2 fields"):
        read("nlpcc", "1\t0\n")


def test_story() -> None:
    story = (
        b"LONDON (CNN) -- It rained.\n\nIt stopped.\n\n@highlight\n\nIt rained in London\n\n@highlight\n\nIs it over?\n"
    )
    assert read_story(story) == ("LONDON (CNN) -- It rained. It stopped.", "It rained in London . Is it over?")
