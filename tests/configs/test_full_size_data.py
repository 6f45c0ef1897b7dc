"""The data of full size: what is said where there is no network, and the published layouts at toy size."""

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from omegaconf import OmegaConf

from fairseq_aggdec.cli.fetch import data_set
from fairseq_aggdec.data.originals import DataSet
from fairseq_aggdec.data.preparation import encode, tokenise
from fairseq_aggdec.data.prepare_config import PrepareConfig, Subwords
from fairseq_aggdec.data.text_stages import write_text
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.structured_files import read_yaml
from tests.configs.composing import CONFIGS, ROOT, SHARED

SETS = sorted(path.stem for path in (SHARED / "data").glob("*.yaml"))
PREPARED = [path.parent.name for path in sorted(CONFIGS.glob("*/prepare.yaml")) if "data_sets" in OmegaConf.load(path)]


@pytest.mark.parametrize("name", SETS)
def test_descriptions_are_complete(name: str) -> None:
    described = data_set(name, SHARED / "data", Path("data"))
    for original, about in described.originals.items():
        assert ("address" in about) != ("ask" in about), original
        assert len(about.get("sha256", "0" * 64)) == 64
    parts = [part for split in described.description.get("text", {}).values() for part in split["parts"]]
    used = {part["original"] for part in parts if "original" in part}
    used |= {name for part in parts for name in [*part.get("originals", []), part.get("list")] if name}
    used |= {name for part in parts if not {"original", "originals"} & part.keys() for name in part["members"].values()}
    for kind in ("files", "folders"):
        used |= {item["original"] for item in described.description.get(kind, {}).values()}
    assert used == set(described.originals)


@pytest.mark.parametrize("experiment", PREPARED)
def test_preparation_reads_what_the_data_sets_hold(experiment: str) -> None:
    config = read_yaml(CONFIGS / experiment / "prepare.yaml", resolve=True)
    sets = [data_set(name, SHARED / "data", Path("data")) for name in config["data_sets"]]
    there = {str(path.relative_to("data")) for item in sets for path in item.outputs()}
    needed = {file for files in config.get("parallel", {}).values() for name in files.values() for file in _names(name)}
    assert needed <= there


def _names(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


@pytest.mark.parametrize("name", SETS)
def test_without_a_network_the_error_says_what_to_fetch_and_where_to_put_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise requests.ConnectionError("no network")

    monkeypatch.setattr(requests, "get", unreachable)
    described = data_set(name, SHARED / "data", tmp_path / "data")
    with pytest.raises(AggdecError) as error:
        described.build()
    text = str(error.value)
    assert f"data set {name}: {len(described.originals)} files are missing" in text
    for original, about in described.originals.items():
        wanted = f"fetch {about['address']}" if "address" in about else about["ask"]
        assert f"  {original}: {wanted}\n" in text
        assert f"and put it at {described.original(original)}" in text
        for known in (f"{about['bytes']:,} bytes" if "bytes" in about else "", about.get("sha256", "")):
            assert known in text
    assert not [path for path in described.folder.rglob("*") if path.is_file()]


def test_without_a_network_prepare_says_so_in_plain_words(tmp_path: Path) -> None:
    """All the way from the script."""
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "no_proxy": ""}
    places = {"AGGDEC_DATA": str(tmp_path / "data"), "AGGDEC_WORK": str(tmp_path / "work")}
    command = ["bash", str(ROOT / "scripts/prepare.sh"), "conll14_gec"]
    done = subprocess.run(command, env=os.environ | places | nowhere, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"and put it at {tmp_path / 'data'}" in done.stderr


# -- the published layouts at toy size --------------------------------------------------------------------------------

LINES = 30


def sentence(side: str, number: int) -> str:
    return f"{side} word{number % 7} and {'abc'[number % 3]} thing {number} ."


def content(part: dict[str, Any], side: str) -> str:
    """A member of a part in the part's format."""
    numbers = range(LINES)
    if part["format"] == "lines":
        return "".join(sentence(side, n) + "\n" for n in numbers)
    if part["format"] == "sgm":
        return "".join(f'<seg id="{n}">{sentence(side, n)}</seg>\n' for n in numbers)
    if part["format"] == "tmx":
        units = (
            "".join(f'<tuv xml:lang="{s}"><seg>{sentence(s, n)}</seg></tuv>' for s in part["sides"]) for n in numbers
        )
        return f"<tmx><body>{''.join(f'<tu>{unit}</tu>' for unit in units)}</body></tmx>"
    if part["format"] == "m2":
        edit = "A 1 2|||R|||other|||REQUIRED|||-NONE-|||0\n"
        return "".join(f"S {sentence('src', n)}\n{edit}\n" for n in numbers)
    assert part["format"] == "nlpcc"
    return "".join(f"{n}\t1\t{sentence('src', n)}\t{sentence('tgt', n)}\n" for n in numbers)


def fill(described: DataSet) -> None:
    """Writes originals in the layout that the description has."""
    archives: dict[str, dict[str, str]] = {}
    for split, settings in described.description.get("text", {}).items():
        for part in settings["parts"]:
            if part["format"] == "stories":
                addresses = [f"http://{split}/{n}" for n in range(LINES)]
                archives[part["list"]] = {"": "".join(f"{address}\n" for address in addresses)}
                for number, address in enumerate(addresses):
                    name = f"stories/{hashlib.sha1(address.encode()).hexdigest()}.story"
                    text = f"{sentence('source', number)}\n\n@highlight\n\n{sentence('target', number)}\n"
                    archives.setdefault(part["originals"][number % 2], {})[name] = text
            elif "members" in part:
                for side, member in part["members"].items():
                    place = (part["original"], member) if "original" in part else (member, "")
                    archives.setdefault(place[0], {})[place[1]] = content(part, side)
            else:
                archives.setdefault(part["original"], {})[part.get("member", "")] = content(part, "")
    for item in described.description.get("folders", {}).values():
        archives.setdefault(item["original"], {})[f"{item['inside']}/a.jpg"] = "x"
    for item in described.description.get("files", {}).values():
        archives.setdefault(item["original"], {}).setdefault(item.get("member", ""), "x\n")
    for name, members in archives.items():
        path = described.original(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if "" in members:
            data = members[""].encode()
            path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
            continue
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w") as package:
                for member, text in members.items():
                    package.writestr(member, text)
            continue
        with tarfile.open(path, "w:bz2" if path.suffix == ".bz2" else "w:gz") as archive:
            for member, text in members.items():
                about = tarfile.TarInfo(member)
                about.size = len(text.encode())
                archive.addfile(about, io.BytesIO(text.encode()))


def toy(name: str, data: Path) -> DataSet:
    """A described data set with toy originals, whose checksums are theirs."""
    described = data_set(name, SHARED / "data", data)
    for about in described.originals.values():
        about.pop("sha256", None)
    for settings in described.description.get("text", {}).values():
        if "sample" in settings:
            settings["sample"] = 5
    fill(described)
    return described


ALIKE = ("wmt14_de_en", "wmt14_blockwise", "wmt16_en_ro")  # as others that are tried
WITHOUT_TEXT = ("celeba_sr",)


@pytest.mark.parametrize("experiment", [name for name in PREPARED if name not in (*ALIKE, *WITHOUT_TEXT)])
def test_published_layouts_are_prepared(experiment: str, tmp_path: Path) -> None:
    config, work = PrepareConfig.read(CONFIGS / experiment / "prepare.yaml"), tmp_path / "work"
    for name in config.data_sets:
        toy(name, tmp_path / "data").build()
    if config.bpe:  # GPT-2's subwords have a test of their own
        config = replace(config, bpe=None if config.bpe.gpt2 else Subwords(symbols=60))
    write_text(config, tmp_path / "data", work)
    tokenise(config, work)
    encode(config, tmp_path / "data", work)
    for split in ("train", "valid", "test"):
        sides = [(work / "bpe" / f"{split}.{side}").read_text().splitlines() for side in config.sides]
        assert len(sides[0]) == len(sides[1]) >= 5
        assert sides[0] != sides[1]
    for item in config.test_sets:  # their corrections are not published
        sides = [(work / "tok" / f"{item.name}.{side}").read_text().splitlines() for side in config.sides]
        assert sides == [[sentence("src", number) for number in range(LINES)]] * 2
