"""Downloading data sets from their public addresses, as `configs/shared/data/NAME.yaml` describes them.

`AGGDEC_DATA/NAME/originals/` holds the published files, downloaded or put there by hand; `AGGDEC_DATA/NAME/` holds
plain text, one sentence in a line: `train.en`, `train.de`. A published SHA-256 is checked. Where none is known, that of
the first file seen is recorded in `originals/checksums.txt`, and the log says that it proves no more.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import shutil
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import requests
from pooch import HTTPDownloader
from tqdm import tqdm

from fairseq_aggdec.data import original_formats, splits
from fairseq_aggdec.data.words import characters
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import PARTIAL, alone_at, file_sha256, read_text_lines, written_whole

logger = logging.getLogger(__name__)

_TIMEOUT = 60  # seconds to wait for an answer
_PIECE = 1 << 16  # bytes read at once; an interrupted download loses its last piece


@dataclass(frozen=True)
class DataSet:
    """A data set: its description, and its folder."""

    name: str
    description: dict[str, Any]
    folder: Path

    @property
    def originals(self) -> dict[str, dict[str, Any]]:
        """{published file: its `address`, or `ask` where a licence must be agreed to; `sha256`, `bytes`}."""
        return dict(self.description["originals"])

    def original(self, name: str) -> Path:
        """The path of a published file."""
        return self.folder / "originals" / name

    def outputs(self) -> list[Path]:
        """The paths of all files that `build` makes."""
        text = self.description.get("text", {})
        paths = [self.folder / f"{split}.{side}" for split, part in text.items() for side in _sides(part)]
        paths += [self.folder / f"valid.{side}" for part in text.values() if "sample" in part for side in _sides(part)]
        names = [*self.description.get("files", {}), *self.description.get("folders", {})]
        return paths + [self.folder / name for name in names]

    def build(self) -> None:
        """Downloads missing files, checks them, and writes the plain text; does nothing where that exists.

        Raises:
            AggdecError: files are damaged, or cannot be downloaded or must be asked for; the message lists all of the
                latter, with what to do.
        """
        if all(path.exists() for path in self.outputs()):
            return
        self._fetch()
        self._check()
        for split, settings in self.description.get("text", {}).items():
            self._write_split(split, settings)
        for name, settings in self.description.get("files", {}).items():
            self._copy(self.folder / name, settings)
        for name, settings in self.description.get("folders", {}).items():
            self._unpack(self.folder / name, settings)

    def _fetch(self) -> None:
        missing = {name: about for name, about in self.originals.items() if not self.original(name).exists()}
        reason = ""
        for name, about in list(missing.items()):
            if "address" in about and not reason:
                try:
                    download(about["address"], self.original(name))
                    del missing[name]
                except ConnectionError as error:
                    reason = str(error)
        if not missing:
            return
        lines = [f"data set {self.name}: {len(missing)} files are missing{f' ({reason})' if reason else ''}"]
        for name, about in missing.items():
            lines.append(f"  {name}: " + ("fetch " + about["address"] if "address" in about else about["ask"]))
            known = [f"{about['bytes']:,} bytes"] if "bytes" in about else []
            known += [f"SHA-256 {about['sha256']}"] if "sha256" in about else []
            if known:
                lines.append(f"    {', '.join(known)}")
            lines.append(f"    and put it at {self.original(name)}")
        raise AggdecError("\n".join(lines))

    def _check(self) -> None:
        record = self.folder / "originals" / "checksums.txt"
        lines = [line.split("  ", 1) for line in read_text_lines(record)] if record.exists() else []
        recorded = {name: digest for digest, name in lines}
        for name, about in self.originals.items():
            found = file_sha256(self.original(name))
            if "sha256" not in about and name not in recorded:
                logger.info("%s: no published checksum is known; recorded is that of this file, %s", name, found)
                recorded[name] = found
            expected = about.get("sha256", recorded.get(name))
            if found != expected:
                raise AggdecError(
                    f"{self.original(name)}: SHA-256 is {found} where {expected} is expected: it is damaged or another "
                    "version; delete it, and fetch it again"
                )
        if recorded:
            with written_whole(record) as partial:
                partial.write_text(
                    "".join(f"{recorded[name]}  {name}\n" for name in sorted(recorded)), encoding="utf-8"
                )

    def _write_split(self, split: str, settings: dict[str, Any]) -> None:
        sides = _sides(settings)
        sampled = {"valid": settings["sample"]} if "sample" in settings else {}
        names = [split, *sampled]
        if all((self.folder / f"{name}.{side}").exists() for name in names for side in sides):
            return
        rows: Iterable[tuple[str, ...]] = tqdm(self._rows(settings), desc=f"{self.name} {split}", unit=" lines")
        if settings.get("tokens") == "characters":
            rows = (tuple(map(characters, row)) for row in rows)
        parts: dict[str, Iterable[tuple[str, ...]]] = {split: rows}
        if sampled:
            everything = list(rows)
            chosen = dict.fromkeys(splits.hold_out((row[0] for row in everything), sampled)["valid"])
            first = {row[0]: row for row in reversed(everything)}
            parts = {
                split: [row for row in everything if row[0] not in chosen],
                "valid": [first[source] for source in chosen],
            }
        for name, part in parts.items():
            written = _write_aligned([self.folder / f"{name}.{side}" for side in sides], part)
            expected = settings.get("lines")
            if expected and name == split and written != expected:
                logger.warning("%s %s: %d lines, where the published data has %d", self.name, name, written, expected)

    def _rows(self, settings: dict[str, Any]) -> Iterator[tuple[str, ...]]:
        for part in settings["parts"]:
            if part["format"] == "stories":
                yield from self._stories(part)
                continue
            members = part.get("members", {})
            sides = list(part["sides"])
            with ExitStack() as stack:
                places = [members[side] for side in sides] if members else [part.get("member")]
                path = self.original(part["original"]) if "original" in part else None
                streams = [
                    stack.enter_context(open_member(path or self.original(place), place if path else None))
                    for place in places
                ]
                try:
                    yield from original_formats.READERS[part["format"]](streams, sides)
                except (AggdecError, UnicodeDecodeError, ValueError) as error:
                    where = ", ".join(filter(None, [part.get("original"), *filter(None, places)]))
                    raise AggdecError(f"data set {self.name}, {where}: {error}") from error

    def _stories(self, part: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """The stories whose addresses are in a list; a story's file name is the SHA-1 of its address."""
        addresses = read_text_lines(self.original(part["list"]))
        wanted = {hashlib.sha1(address.strip().encode()).hexdigest() for address in addresses if address.strip()}
        for name in part["originals"]:
            with tarfile.open(self.original(name), "r|*") as archive:
                for member in archive:
                    stream = archive.extractfile(member) if Path(member.name).stem in wanted else None
                    if stream is not None:
                        article, summary = original_formats.read_story(stream.read())
                        if article and summary:
                            yield article, summary

    def _copy(self, output: Path, settings: dict[str, Any]) -> None:
        if output.exists():
            return
        with (
            open_member(self.original(settings["original"]), settings.get("member")) as stream,
            written_whole(output) as partial,
            partial.open("wb") as copy,
        ):
            shutil.copyfileobj(stream, copy)

    def _unpack(self, output: Path, settings: dict[str, Any]) -> None:
        """Unpacks the folder `inside` of an archive."""
        if output.exists():
            return
        partial = output.with_name(output.name + PARTIAL)
        partial.mkdir(parents=True, exist_ok=True)
        with alone_at(partial):  # files that a killed run has left are written again
            try:
                shutil.unpack_archive(self.original(settings["original"]), partial)
            except (shutil.ReadError, tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
                raise AggdecError(
                    f"{self.original(settings['original'])}: damaged ({error}); fetch it again"
                ) from error
            (partial / settings["inside"]).rename(output)
            shutil.rmtree(partial)


def _sides(settings: dict[str, Any]) -> list[str]:
    return list(settings["parts"][0]["sides"])


def _write_aligned(paths: list[Path], rows: Iterable[tuple[str, ...]]) -> int:
    """Writes a file for each side; returns the number of lines."""
    count = 0
    with ExitStack() as stack:
        partials = [stack.enter_context(written_whole(path)) for path in paths]
        outputs = [stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in partials]
        for row in rows:
            count += 1
            for output, sentence in zip(outputs, row, strict=True):
                output.write(" ".join(sentence.split()) + "\n")
    return count


@contextmanager
def open_member(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    """Opens a file, or a member of an archive (tar in any compression, zip).

    Raises:
        AggdecError: there is no such member, or the archive is damaged.
    """
    try:
        with ExitStack() as stack:
            opened: Any
            if member is None and path.suffix == ".gz":
                opened = gzip.GzipFile(path)
            elif member is None:
                opened = path.open("rb")
            elif zipfile.is_zipfile(path):
                opened = stack.enter_context(zipfile.ZipFile(path)).open(member)
            else:
                opened = stack.enter_context(tarfile.open(path)).extractfile(member)
                if opened is None:
                    raise KeyError(member)
            yield cast(IO[bytes], stack.enter_context(opened))
    except KeyError as error:
        raise AggdecError(f"{path} has no member {member}") from error
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, gzip.BadGzipFile) as error:
        raise AggdecError(f"{path}: damaged ({error}); delete it, and fetch it again") from error


def download(address: str, path: Path) -> None:
    """Downloads a file, which has its name only when it is complete; an interrupted download goes on.

    Raises:
        ConnectionError: the server cannot be reached, or refuses; the downloaded part is kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL)
    partial.touch()
    with alone_at(partial):
        try:
            with partial.open("ab") as output:
                _fetch_rest(address, output)
        except requests.RequestException as error:
            go_on = "; run this again to go on" if partial.stat().st_size else ""
            raise ConnectionError(f"{address}: {_root_cause(error)}{go_on}") from error
        finally:
            if partial.stat().st_size == 0:  # an empty file is of no use
                partial.unlink()
        partial.replace(path)


def _fetch_rest(address: str, output: IO[bytes]) -> None:
    start = output.tell()

    def begin(answer: requests.Response, **_: Any) -> None:
        if answer.status_code in (200, 416):  # the server sends the whole file, or has no more: start again
            output.truncate(0)

    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
    options = {"timeout": _TIMEOUT, "headers": headers, "hooks": {"response": begin}}
    HTTPDownloader(progressbar=True, chunk_size=_PIECE, **options)(address, output, None)


def _root_cause(error: BaseException) -> str:
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return getattr(error, "strerror", None) or str(error)
