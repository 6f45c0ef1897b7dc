"""Reading aligned sentences in the formats of public corpora.

Each reader takes the opened files of one part of a corpus, and yields tuples with one sentence for each side, without
line feeds in it and white space around it.
"""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import IO

from fairseq_aggdec.data.m2_file import parse_m2
from fairseq_aggdec.errors import AggdecError

Aligned = Iterator[tuple[str, ...]]
Reader = Callable[[Sequence[IO[bytes]], Sequence[str]], Aligned]

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def _text(line: bytes) -> str:
    return line.decode("utf-8").strip()


def read_lines(streams: Sequence[IO[bytes]], sides: Sequence[str]) -> Aligned:
    """One file for each side with one sentence in a line; only a line feed ends a line.

    Raises:
        AggdecError: the files have different numbers of lines.
    """
    for number, row in enumerate(zip_longest(*streams), start=1):
        if ended := [side for side, line in zip(sides, row, strict=True) if line is None]:
            raise AggdecError(f"line {number} is missing on the side {', '.join(ended)}: the file is cut off")
        yield tuple(map(_text, row))


def read_sgm(streams: Sequence[IO[bytes]], sides: Sequence[str]) -> Aligned:
    """The SGML of WMT's test sets, one file for each side.

    Raises:
        AggdecError: the files have different numbers of segments.
    """
    columns = [
        [" ".join(html.unescape(text).split()) for text in _SEGMENT.findall(stream.read().decode("utf-8"))]
        for stream in streams
    ]
    if len({len(column) for column in columns}) != 1:
        counts = ", ".join(f"{side}: {len(column)}" for side, column in zip(sides, columns, strict=True))
        raise AggdecError(f"different numbers of segments ({counts})")
    yield from zip(*columns, strict=True)


def read_tmx(streams: Sequence[IO[bytes]], sides: Sequence[str]) -> Aligned:
    """A translation memory with all sides in one file."""
    for _, unit in ET.iterparse(streams[0]):
        if unit.tag != "tu":
            continue
        found = {}
        for variant in unit.iter("tuv"):
            language = variant.get(_LANGUAGE) or variant.get("lang") or ""
            found[language.lower()] = " ".join("".join(variant.itertext()).split())
        if all(side in found for side in sides):
            yield tuple(found[side] for side in sides)
        unit.clear()


def read_m2(streams: Sequence[IO[bytes]], sides: Sequence[str]) -> Aligned:
    """M2 annotations of grammatical errors: (source, first annotator's correction), in the file's tokens.

    An edit with several corrections takes the first. Where the annotator wants no edit, the target equals the source.
    """
    return (sentence.pair() for sentence in parse_m2(streams[0], "M2"))


def read_nlpcc(streams: Sequence[IO[bytes]], sides: Sequence[str]) -> Aligned:
    """NLPCC-2018's training file: number, number of corrections, sentence, its corrections, separated by tabs.

    A sentence with several corrections gives several pairs; one without a correction is paired with itself.
    """
    for number, raw in enumerate(streams[0], start=1):
        fields = _text(raw).split("\t")
        if len(fields) < 3:
            raise AggdecError(f"line {number} has {len(fields)} fields where 3 or more are expected")
        source, corrections = fields[2], [text for text in fields[3:] if text.strip()]
        for target in corrections or [source]:
            yield source, target


READERS: dict[str, Reader] = {
    "lines": read_lines,
    "sgm": read_sgm,
    "tmx": read_tmx,
    "m2": read_m2,
    "nlpcc": read_nlpcc,
}
"""{name of a format in a data set's description: reader}"""


def read_story(data: bytes) -> tuple[str, str]:
    """A `.story` file of CNN/Daily Mail: the article, and its highlights as a summary, each on one line."""
    body, *highlights = data.decode("utf-8").split("@highlight")
    summary = " ".join(_sentence(part) for part in highlights if part.strip())
    return " ".join(body.split()), summary


def _sentence(highlight: str) -> str:
    text = " ".join(highlight.split())
    return text if text.endswith((".", "!", "?", '"', "'")) else f"{text} ."
