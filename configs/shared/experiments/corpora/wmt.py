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

from experiments.downloads import Original, fetch
from experiments.sentence_pairs import Pair, is_usual
from experiments.steps import Steps
from experiments.text_files import one_space, read_lines, read_pairs
from fairseq_aggdec.errors import AggdecError

SYMBOLS = 32000
MAX_WORDS, RATIO = 250, 1.5
"""the most words of a training sentence, and of a side over the other's, as usual for this data"""

_WMT14, _WMT16 = "wmt14_en_de", "wmt16_en_ro"
_DEV14 = (
    "dev/newstest2013.en",
    "dev/newstest2013.de",
    "dev/newstest2014-deen-ref.en.sgm",
    "dev/newstest2014-deen-src.de.sgm",
)
_DEV16 = tuple(
    f"dev/{name}-roen-{side}.sgm"
    for name in ("newsdev2016", "newstest2016")
    for side in ("ref.en", "src.ro")
)


def _dev(folder: str, members: tuple[str, ...]) -> Original:
    return Original(
        f"{folder}/originals/dev.tgz",
        "http://data.statmt.org/wmt19/translation-task/dev.tgz",
        sha256="7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
        unpack_to=f"{folder}/dev",
        inside="dev",
        members=members,
    )


WMT14 = [
    Original(
        f"{_WMT14}/originals/training-parallel-europarl-v7.tgz",
        "http://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
        sha256="0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        unpack_to=f"{_WMT14}/europarl",
        inside="training",
        members=("training/europarl-v7.de-en.en", "training/europarl-v7.de-en.de"),
    ),
    Original(
        f"{_WMT14}/originals/training-parallel-commoncrawl.tgz",
        "http://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
        sha256="c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
        unpack_to=f"{_WMT14}/commoncrawl",
        members=("commoncrawl.de-en.en", "commoncrawl.de-en.de"),
    ),
    Original(
        f"{_WMT14}/originals/training-parallel-nc-v9.tgz",
        "http://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",
        sha256="cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
        unpack_to=f"{_WMT14}/news-commentary",
        inside="training",
        members=(
            "training/news-commentary-v9.de-en.en",
            "training/news-commentary-v9.de-en.de",
        ),
    ),
    _dev(_WMT14, _DEV14),
]
WMT16 = [
    Original(
        f"{_WMT16}/originals/training-parallel-ep-v8.tgz",
        "http://data.statmt.org/wmt16/translation-task/training-parallel-ep-v8.tgz",
        sha256="8917bd3bef3bc894c8519ca1f8a4c7c330aad08a1263655a9d99ee13d532e3c7",
        unpack_to=f"{_WMT16}/europarl",
        inside="training-parallel-ep-v8",
        members=(
            "training-parallel-ep-v8/europarl-v8.ro-en.en",
            "training-parallel-ep-v8/europarl-v8.ro-en.ro",
        ),
    ),
    # SETIMES v2; the address that WMT links, opus.nlpl.eu/download.php, has been answered by 404 since 2024
    Original(
        f"{_WMT16}/originals/en-ro.tmx.gz",
        "https://object.pouta.csc.fi/OPUS-SETIMES/v2/tmx/en-ro.tmx.gz",
        sha256="56bfaa2a8c8bdfccb7b50cc926067e2291347d807004e81faab8762ddbf26302",
    ),
    _dev(_WMT16, _DEV16),
]

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
            found = {}
            for variant in unit.iter("tuv"):
                language = variant.get(_LANGUAGE) or variant.get("lang") or ""
                found[language.lower()] = one_space("".join(variant.itertext()))
            if all(side in found for side in sides):
                yield found[sides[0]], found[sides[1]]
            unit.clear()


def normaliser(language: str) -> Callable[[str], str]:
    """A function that does what Moses' scripts normalize-punctuation and remove-non-printing-char do to a line.

    Romanian also loses the marks of its letters.
    """
    punctuation, letters = (
        MosesPunctNormalizer(language, perl_parity=True),
        _ROMANIAN if language == "ro" else {},
    )

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
    fetch(data, WMT14)
    folder = data / _WMT14
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
    fetch(data, WMT16)
    folder = data / _WMT16
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
