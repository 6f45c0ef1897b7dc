"""Downloading, checking and unpacking, from a server in this process."""

import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from experiments.downloads import Original, fetch

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import file_sha256
from tests.support.helpers import refused_with


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """(a folder, the address at which its files are served)."""
    folder = tmp_path / "site"
    folder.mkdir()
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_an_archive_is_downloaded_once_checked_and_unpacked(
    site: tuple[Path, str], tmp_path: Path
) -> None:
    folder, address = site
    (tmp_path / "text").write_text("x")
    with tarfile.open(folder / "a.tgz", "w:gz") as archive:
        for name in ("wanted", "unwanted"):
            archive.add(tmp_path / "text", f"inner/{name}")
    item = Original(
        "set/originals/a.tgz",
        f"{address}/a.tgz",
        sha256=file_sha256(folder / "a.tgz"),
        unpack_to="set/a",
        inside="inner",
        members=("inner/wanted",),
    )
    data = tmp_path / "data"
    fetch(data, [item])
    assert [path.name for path in (data / "set/a").iterdir()] == ["wanted"]
    assert sorted(path.name for path in (data / "set").iterdir()) == ["a", "originals"]
    (folder / "a.tgz").unlink()
    (data / item.path).unlink()
    fetch(data, [item])  # what is unpacked is enough
    (folder / "a").write_text("other")
    with refused_with("does not match the known hash"):
        fetch(data, [Original("set/b", f"{address}/a", sha256="0" * 64)])
    assert not (data / "set/b").exists()


def test_what_is_missing_is_said_at_once_and_taken_when_it_was_put_there(
    site: tuple[Path, str], tmp_path: Path
) -> None:
    items = [
        Original("set/licensed", ask="licensed: ask its makers", sha256="0" * 64),
        Original("set/gone", f"{site[1]}/gone"),
    ]
    with pytest.raises(AggdecError) as caught:
        fetch(tmp_path, items)
    message = str(caught.value)
    assert "2 files of data sets are missing" in message
    assert (
        f"licensed: licensed: ask its makers, SHA-256 {'0' * 64}\n    and put it at {tmp_path}/set/licensed"
        in message
    )
    assert f"gone: fetch {site[1]}/gone (404 Client Error" in message
    (tmp_path / "set").mkdir(exist_ok=True)
    for name in ("licensed", "gone"):
        (tmp_path / "set" / name).write_text("x")
    with refused_with(
        r"set/licensed: SHA-256 is .* damaged or another version; delete it"
    ):
        fetch(tmp_path, items)
    fetch(tmp_path, items[1:])


def test_an_archive_without_a_file_is_named_and_nothing_seems_unpacked(
    tmp_path: Path,
) -> None:
    with tarfile.open(tmp_path / "a.tgz", "w:gz"):
        pass
    with refused_with(r"a\.tgz has no member other"):
        fetch(tmp_path, [Original("a.tgz", unpack_to="a", members=("other",))])
    assert not (tmp_path / "a").exists()
