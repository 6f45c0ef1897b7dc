"""Fetching data sets: what is asked for, checked, resumed and written."""

import http.server
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.data import originals
from fairseq_aggdec.data.originals import DataSet, download, open_member
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import file_sha256

PART = {"format": "lines", "sides": ["en", "de"], "members": {"en": "a.en", "de": "a.de"}}
DESCRIPTION: dict[str, Any] = {
    "originals": {"a.tgz": {"address": "http://example.org/a.tgz", "bytes": 7}, "b.m2": {"ask": "licensed. Ask Bob"}},
    "text": {"train": {"lines": 2, "parts": [{"original": "a.tgz", **PART}]}},
    "files": {"gold.m2": {"original": "b.m2"}},
}


def write_archive(path: Path, members: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))


@pytest.fixture
def complete(tmp_path: Path) -> DataSet:
    """A data set whose originals are all there."""
    data_set = DataSet("toy", DESCRIPTION, tmp_path / "toy")
    write_archive(data_set.original("a.tgz"), {"a.en": "one\ntwo\n", "a.de": "eins\nzwei\n"})
    data_set.original("b.m2").write_text("S one\n")
    return data_set


def test_all_that_is_missing_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(address: str, path: Path) -> None:
        raise ConnectionError(f"{address}: no network")

    monkeypatch.setattr(originals, "download", no_network)
    data_set = DataSet("toy", DESCRIPTION, tmp_path / "toy")
    with pytest.raises(AggdecError) as caught:
        data_set.build()
    message = str(caught.value)
    for word in ("toy: 2 files", "no network", "fetch http://example.org/a.tgz", "7 bytes", "licensed. Ask Bob"):
        assert word in message
    for name in ("a.tgz", "b.m2"):
        assert f"put it at {tmp_path / 'toy/originals' / name}" in message


def test_text_and_files_are_written_once(complete: DataSet, caplog: pytest.LogCaptureFixture) -> None:
    complete.build()
    assert [path.name for path in complete.outputs()] == ["train.en", "train.de", "gold.m2"]
    assert (complete.folder / "train.de").read_text() == "eins\nzwei\n"
    assert (complete.folder / "gold.m2").read_text() == "S one\n"
    complete.original("a.tgz").unlink()
    complete.build()  # the originals are not needed any more
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_checksum_that_nobody_published_is_recorded(complete: DataSet, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="fairseq_aggdec.data.originals"):
        complete.build()
    assert "a.tgz: no published checksum is known" in caplog.text
    record = (complete.folder / "originals/checksums.txt").read_text()
    assert f"{file_sha256(complete.original('b.m2'))}  b.m2\n" in record
    complete.original("b.m2").write_text("S another\n")
    (complete.folder / "gold.m2").unlink()
    with pytest.raises(AggdecError, match=r"b\.m2: SHA-256 is \w+ where \w+ is expected"):
        complete.build()
    assert not (complete.folder / "gold.m2").exists()


def test_damage_names_the_archive_and_the_member(complete: DataSet) -> None:
    write_archive(complete.original("a.tgz"), {"a.en": "one\ntwo\n", "a.de": "eins\n"})
    with pytest.raises(AggdecError, match=r"toy, a\.tgz, a\.en, a\.de: line 2 is missing on the side de"):
        complete.build()
    assert not (complete.folder / "train.en").exists()


def test_archives_and_their_errors(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x.txt", "hello")
    write_archive(tmp_path / "a.tgz", {"x.txt": "hello"})
    for name in ("a.zip", "a.tgz"):
        with open_member(tmp_path / name, "x.txt") as stream:
            assert stream.read() == b"hello"
        with pytest.raises(AggdecError, match="no member y"), open_member(tmp_path / name, "y"):
            pass
    (tmp_path / "b.tgz").write_bytes(b"no archive")
    with pytest.raises(AggdecError, match=r"b\.tgz: damaged"), open_member(tmp_path / "b.tgz", "x"):
        pass


def test_a_sample_becomes_the_validation_set(tmp_path: Path) -> None:
    rows = "".join(f"{n}\t1\t句{n}\t好{n}\n" for n in range(20)) + "20\t1\t句0\t又0\n"
    part = {"original": "data.train", "format": "nlpcc", "sides": ["src", "tgt"]}
    text = {"train": {"sample": 5, "tokens": "characters", "parts": [part]}}
    data_set = DataSet("toy", {"originals": {"data.train": {"ask": "Bob"}}, "text": text}, tmp_path)
    data_set.original("data.train").parent.mkdir()
    data_set.original("data.train").write_text(rows, encoding="utf-8")
    data_set.build()
    train, valid = [(tmp_path / f"{name}.src").read_text().splitlines() for name in ("train", "valid")]
    assert len(valid) == 5
    assert not set(train) & set(valid)
    assert len(train) == 21 - 5 - ("句 0" in valid)
    assert "句 1 5" in train + valid


class _Server(http.server.BaseHTTPRequestHandler):
    """`/file` can be gone on with, `/whole` cannot, and `/short` ends before its end."""

    content = b"0123456789" * 30_000

    def do_GET(self) -> None:
        start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        if self.path == "/whole":
            start = 0
        if self.path == "/nothing" or start >= len(self.content):
            self.send_error(416 if start else 404)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        self.wfile.write(self.content[start : 200_000 if self.path == "/short" else None])

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "127.0.0.1")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", ["file", "whole"])
def test_a_download_goes_on_where_it_stopped_or_begins_anew(name: str, tmp_path: Path, server: str) -> None:
    (tmp_path / "file.partial").write_bytes(_Server.content[:37])
    download(f"{server}/{name}", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == _Server.content
    assert not (tmp_path / "file.partial").exists()


def test_a_download_that_is_cut_off_is_not_taken_for_whole(tmp_path: Path, server: str) -> None:
    with pytest.raises(ConnectionError, match=r"/short: .*100000 more expected.*; run this again to go on"):
        download(f"{server}/short", tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file.partial"]
    download(f"{server}/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == _Server.content
