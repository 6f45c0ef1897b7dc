"""The published files of data sets: downloaded from their public addresses, or put by hand where an error says."""

from __future__ import annotations

import logging
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pooch
import requests

from experiments.yaml_files import read_yaml
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import PARTIAL, alone_at, file_sha256

_TIMEOUT = 60
"""seconds to wait for an answer"""


@dataclass(frozen=True)
class Original:
    """A published file."""

    path: str
    """its place below the folder of the data sets"""
    address: str | None = None
    """its public address; None: it must be asked for, or fetched in a browser"""
    ask: str = ""
    """how to get a file without an address"""
    sha256: str | None = None
    """the published checksum"""
    unpack_to: str | None = None
    """the folder, below that of the data sets, which an archive is unpacked to"""
    inside: str = "."
    """the folder in the archive that becomes `unpack_to`"""
    members: Sequence[str] = ()
    """the members of the archive that are unpacked; none for all"""


def published(corpus: str) -> list[Original]:
    """The published files of a corpus, by corpora/published.yaml."""
    files = read_yaml(Path(__file__).parent / "corpora/published.yaml")
    return [Original(**fields) for fields in files[corpus]]


def fetch(data: Path, originals: Iterable[Original]) -> None:
    """Download files that are missing, check and unpack them.

    Args:
        data: the folder of the data sets.
        originals: the files.

    Raises:
        AggdecError: a file is damaged, or files cannot be downloaded or must be asked for; one message lists all of the
            latter, with what to do.
    """
    missing = []
    for item in originals:
        if item.unpack_to and (data / item.unpack_to).exists():
            continue
        try:
            _fetch(item, data / item.path)
        except ConnectionError as error:
            missing.append(f"  {error}")
            continue
        if item.unpack_to:
            unpack(data / item.path, data / item.unpack_to, item)
    if missing:
        raise AggdecError(
            "\n".join([f"{len(missing)} files of data sets are missing:", *missing])
        )


def _fetch(item: Original, path: Path) -> None:
    """Raise `ConnectionError`, which says what to do, where the file is not there and cannot be downloaded."""
    checksum = f", SHA-256 {item.sha256}" if item.sha256 else ""
    if path.exists():
        if item.sha256 and (found := file_sha256(path)) != item.sha256:
            raise AggdecError(
                f"{path}: SHA-256 is {found} where {item.sha256} is expected: it is damaged or another version; "
                "delete it, and fetch it again"
            )
    elif item.address is None:
        raise ConnectionError(
            f"{path.name}: {item.ask}{checksum}\n    and put it at {path}"
        )
    else:
        known = item.sha256 and f"sha256:{item.sha256}"
        downloader = pooch.HTTPDownloader(progressbar=True, timeout=_TIMEOUT)
        # it says the checksum of a file that has no published one
        pooch.get_logger().setLevel(logging.INFO)
        try:
            pooch.retrieve(
                item.address, known, path.name, path.parent, downloader=downloader
            )
        except (requests.RequestException, OSError) as error:
            raise ConnectionError(
                f"{path.name}: fetch {item.address}{checksum} ({_root_cause(error)})\n    and put it at {path}"
            ) from error
        except ValueError as error:  # another checksum
            raise AggdecError(f"{item.address}: {error}") from error


def unpack(archive: Path, folder: Path, item: Original) -> None:
    """Unpack an archive to a folder, which exists only when it is whole.

    Raises:
        AggdecError: the archive is damaged, or has no such members.
    """
    partial = folder.with_name(folder.name + PARTIAL)
    partial.mkdir(parents=True, exist_ok=True)
    with alone_at(partial):  # files that a killed run has left are written again
        unpacker = pooch.Unzip if zipfile.is_zipfile(archive) else pooch.Untar
        try:
            unpacker(list(item.members) or None, str(partial.absolute()))(
                str(archive), "download", None
            )
        except (
            tarfile.TarError,
            zipfile.BadZipFile,
            EOFError,
            KeyError,
            OSError,
            zlib.error,
        ) as error:
            raise AggdecError(
                f"{archive}: damaged ({error}); delete it, and fetch it again"
            ) from error
        # another version of the archive may lack files
        if lacking := [
            name
            for name in item.members or (item.inside,)
            if not (partial / name).exists()
        ]:
            raise AggdecError(
                f"{archive} has no member {', '.join(lacking)}; fetch the version that is published"
            )
        # what is whole gets its name
        (partial / item.inside).rename(folder)
        shutil.rmtree(partial, ignore_errors=True)


def _root_cause(error: BaseException) -> str:
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return getattr(error, "strerror", None) or str(error)
