"""The data of full size: the published layouts at toy size."""

import gzip
import hashlib
import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from experiments import downloads
from experiments.about import read_about
from experiments.corpora import wmt
from experiments.downloads import Original
from experiments.steps import Steps

from configs.cnndm.prepare import SPLITS, STORIES
from tests.configs.composing import CONFIGS, experiments
from tests.configs.experiments.preparing import experiment

LINES = 30
FULL_SIZE = [name for name in experiments() if read_about(CONFIGS / name).full_size]


def sentence(side: str, number: int) -> str:
    return f"{side} word{number % 7} and {'abc'[number % 3]} „ş’ thing {number} ."


def content(name: str) -> str:
    """A published file in the format that its name says."""
    numbers = range(LINES)
    suffix = Path(name).suffix[1:]
    if suffix in ("m2", "01"):
        edit = "A 1 2|||R|||other|||REQUIRED|||-NONE-|||0\n"
        return "".join(f"S {sentence('src', n)}\n{edit}\n" for n in numbers)
    if suffix == "sgm":
        return "".join(f'<seg id="{n}">{sentence(name, n)}</seg>\n' for n in numbers)
    if suffix == "tmx":
        units = (
            "".join(
                f'<tuv xml:lang="{s}"><seg>{sentence(s, n)}</seg></tuv>'
                for s in ("en", "ro")
            )
            for n in numbers
        )
        return (
            f"<tmx><body>{''.join(f'<tu>{unit}</tu>' for unit in units)}</body></tmx>"
        )
    if name == "data.train":
        return "".join(
            f"{n}\t1\t{sentence('src', n)}\t{sentence('tgt', n)}\n" for n in numbers
        )
    if name.startswith("all_"):
        return "".join(f"http://{name}/{n}\n" for n in numbers)
    return "".join(
        sentence("src" if suffix == "orig" else name[-9:], n) + "\n" for n in numbers
    )


def stories() -> dict[str, str]:
    addresses = [
        line
        for item in SPLITS.values()
        for line in content(Path(item.path).name).splitlines()
    ]
    names = [
        f"stories/{hashlib.sha1(address.encode()).hexdigest()}.story"
        for address in addresses
    ]
    return {
        name: f"{sentence('a', n)}\n\n@highlight\n\n{sentence('b', n)}\n"
        for n, name in enumerate(names)
    }


def publish(item: Original, data: Path) -> None:
    """Writes a toy file in the layout of an original."""
    path = data / item.path
    path.parent.mkdir(parents=True, exist_ok=True)
    members = {name: content(name) for name in item.members}
    if item.unpack_to and not members:
        members = {f"{item.inside}/one.txt": "x"}
    if item.path in {story.path for story in STORIES}:
        members = stories() if item == STORIES[0] else {"stories/other.story": "x"}
    if not members:
        data_of_file = content(path.name.removesuffix(".gz")).encode()
        path.write_bytes(
            gzip.compress(data_of_file) if path.suffix == ".gz" else data_of_file
        )
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as package:
            for member, text in members.items():
                package.writestr(member, text)
    else:
        with tarfile.open(
            path, "w:bz2" if path.suffix == ".bz2" else "w:gz"
        ) as archive:
            for member, text in [*members.items(), ("unused", "x")]:
                about = tarfile.TarInfo(member)
                about.size = len(text.encode())
                archive.addfile(about, io.BytesIO(text.encode()))


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    """All downloads are toys, whatever their published checksums, and only the step `text` is taken."""

    def fetch(data: Path, originals: list[Original]) -> None:
        for item in originals:
            if not (data / item.path).exists():
                publish(item, data)
        really(data, [replace(item, sha256=None) for item in originals])

    really = downloads.fetch
    monkeypatch.setattr(downloads, "fetch", fetch)
    # they are those of every experiment
    for step in ("encode", "binarise", "learn_subwords"):
        monkeypatch.setattr(Steps, step, lambda *_, **__: None)


def test_punctuation_is_that_of_moses_and_romanian_has_no_marks() -> None:
    assert (
        wmt.normaliser("ro")("„Aşa ţară”,\u200b și ați… ĂÂÎ")
        == '"Asa tara", si ati... AAI'
    )
    assert (
        wmt.normaliser("de")("„So“,\x07 sagt er – „Wie geht’s”")
        == '"So", sagt er - "Wie geht\'s"'
    )


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize("name", FULL_SIZE)
def test_published_layouts_become_text(name: str, tmp_path: Path) -> None:
    module = experiment(name, VALID_SENTENCES=5)
    shared = getattr(module, "wmt", None)
    for part in filter(None, (module, shared)):
        part.fetch = downloads.fetch
    module.prepare(Steps(module.EXPERIMENT, tmp_path / "data", tmp_path / "work"))
    if name == "celeba_sr":
        assert (tmp_path / "data/celeba/img_align_celeba/one.txt").is_file()
        return
    for split in ("train", "valid", "test"):
        sides = [
            (tmp_path / f"work/tok/{split}.{side}").read_text().splitlines()
            for side in module.EXPERIMENT.sides
        ]
        assert len(sides[0]) == len(sides[1]) >= 5
        assert sides[0] != sides[1]
    for item in module.EXPERIMENT.test_sets:  # their corrections are not published
        for side in module.EXPERIMENT.sides:
            assert (tmp_path / f"work/tok/{item.name}.{side}").read_text() == content(
                "x.orig"
            )
    if name.startswith("wmt"):
        text = {
            path.name: path.read_text().splitlines()[0]
            for path in (tmp_path / "work/text").iterdir()
        }
        for file, line in text.items():
            held_out = name.startswith("wmt14") and not file.startswith("train")
            assert (
                "„ş'" if held_out else '"s"' if file.endswith(".ro") else '"ş"'
            ) in line
    if name == "wikilarge":
        assert len(list((tmp_path / "work/tok").glob("test.ref*"))) == 8
