"""WMT's translation data: published files, and how their text becomes fairseq's binary data.

WMT 2014 English-German (https://www.statmt.org/wmt14/translation-task.html): Europarl v7, Common Crawl, News Commentary
v9; newstest2013 as validation, newstest2014 (the full one, 3,003 sentences) as test set. WMT 2016 English-Romanian
(https://www.statmt.org/wmt16/translation-task.html): Europarl v8 and SETIMES v2; newsdev2016 and newstest2016.
"""

import gzip
import html
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from sacremoses import MosesPunctNormalizer

from experiments.downloads import fetch, published
from experiments.sentence_pairs import Pair, is_usual
from experiments.steps import Steps
from experiments.text_files import one_space, read_lines, read_pairs
from fairseq_aggdec.errors import AggdecError

SYMBOLS = 32000
MAX_WORDS = 250
"""of a training sentence, as usual for this data"""
RATIO = 1.5
"""the most words of a side over the other's"""

_ROMANIAN = str.maketrans("ŞşŢţȘșȚțĂăÂâÎî", "SsTtSsTtAaAaIi")
"""letters without their marks, as in the data of all non-autoregressive work on this pair (Lee et al. 2018)"""
_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_sgm(file: Path) -> list[str]:
    """The sentences of one side of a test set in WMT's SGML."""
    return [
        one_space(html.unescape(text))
        for text in _SEGMENT.findall("\n".join(read_lines(file)))
    ]


def read_tmx(file: Path, sides: tuple[str, str]) -> Iterator[Pair]:
    """Yields the pairs of a translation memory with both sides, gzipped."""
    with gzip.open(file) as stream:
        for _, unit in ET.iterparse(stream):
            if unit.tag != "tu":
                continue
            sentences = {}
            for variant in unit.iter("tuv"):
                language = variant.get(_LANGUAGE) or variant.get("lang") or ""
                sentences[language.lower()] = one_space("".join(variant.itertext()))
            if all(side in sentences for side in sides):
                yield sentences[sides[0]], sentences[sides[1]]
            unit.clear()


def normaliser(language: str) -> Callable[[str], str]:
    """A function that does what Moses' scripts normalize-punctuation and remove-non-printing-char do to a line.

    Romanian also loses the marks of its letters.
    """
    punctuation = MosesPunctNormalizer(language, perl_parity=True)
    letters = _ROMANIAN if language == "ro" else {}

    def normalise(line: str) -> str:
        line = punctuation.normalize(line).translate(letters)
        if not line.isprintable():
            line = "".join(
                " " if unicodedata.category(one).startswith("C") else one
                for one in line
            )
        return one_space(line)

    return normalise


def apostrophes(_: str) -> Callable[[str], str]:
    """A function that does to a line what fairseq's script for WMT 2014 does to test sets."""
    return lambda line: line.replace("’", "'")


def _changed(
    pairs: Iterable[Pair],
    sides: tuple[str, str],
    change: Callable[[str], Callable[[str], str]],
) -> Iterator[Pair]:
    source, target = map(change, sides)
    return ((source(one), target(other)) for one, other in pairs)


def _sgm_pairs(files: dict[str, Path], sides: tuple[str, str]) -> list[Pair]:
    source, target = (read_sgm(files[side]) for side in sides)
    if len(source) != len(target):
        raise AggdecError(
            f"{files[sides[0]]} has {len(source)} segments, {files[sides[1]]} has {len(target)}"
        )
    return list(zip(source, target, strict=True))


def wmt14(data: Path, sides: tuple[str, str]) -> dict[str, Iterator[Pair]]:
    """{split: pairs} of WMT 2014, whose training pairs alone have normalised punctuation, as in fairseq's script."""
    fetch(data, published("wmt14"))
    folder = data / "wmt14_en_de"
    names = (
        "europarl/europarl-v7",
        "commoncrawl/commoncrawl",
        "news-commentary/news-commentary-v9",
    )
    corpora = [
        read_pairs(*(folder / f"{name}.de-en.{side}" for side in sides))
        for name in names
    ]
    test = {
        side: folder / f"dev/newstest2014-deen-{kind}.{side}.sgm"
        for side, kind in (("en", "ref"), ("de", "src"))
    }
    valid = read_pairs(*(folder / f"dev/newstest2013.{side}" for side in sides))
    held_out = {"valid": valid, "test": iter(_sgm_pairs(test, sides))}
    return {
        "train": _changed(chain.from_iterable(corpora), sides, normaliser),
        **{
            name: _changed(pairs, sides, apostrophes)
            for name, pairs in held_out.items()
        },
    }


def wmt16(data: Path, sides: tuple[str, str]) -> dict[str, Iterator[Pair]]:
    """{split: pairs} of WMT 2016, all with normalised punctuation, and Romanian without the marks of its letters."""
    fetch(data, published("wmt16"))
    folder = data / "wmt16_en_ro"
    europarl = read_pairs(
        *(folder / f"europarl/europarl-v8.ro-en.{side}" for side in sides)
    )
    parts: dict[str, Iterable[Pair]] = {
        "train": chain(europarl, read_tmx(folder / "originals/en-ro.tmx.gz", sides))
    }
    for name, stem in (("valid", "newsdev2016"), ("test", "newstest2016")):
        files = {
            side: folder / f"dev/{stem}-roen-{kind}.{side}.sgm"
            for side, kind in (("en", "ref"), ("ro", "src"))
        }
        parts[name] = _sgm_pairs(files, sides)
    return {name: _changed(pairs, sides, normaliser) for name, pairs in parts.items()}


def preparation(
    corpora: Callable[[Path, tuple[str, str]], dict[str, Iterator[Pair]]],
) -> Callable[[Steps], None]:
    """The function `prepare` of a pair: Moses tokens -> 32K joint subwords -> fairseq binary (papers/000 §4.2.1)."""

    def text(steps: Steps, folder: Path) -> None:
        for name, pairs in corpora(steps.data, steps.experiment.sides).items():
            kept = (
                pair
                for pair in pairs
                if name != "train" or is_usual(pair, MAX_WORDS, RATIO)
            )
            steps.write_pairs(folder, name, kept)

    def prepare(steps: Steps) -> None:
        steps.once("text", text)
        steps.tokenise()
        steps.encode(steps.learn_subwords(SYMBOLS), max_tokens=250)
        steps.binarise()

    return prepare
