"""Whom the server answers: names it is asked by, pages of other origins, slow and hostile clients."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import cast

import pytest
import requests

from fairseq_aggdec.model import Model
from fairseq_aggdec.serve import connections
from fairseq_aggdec.serve.app import make_app
from fairseq_aggdec.serve.connections import known_as
from fairseq_aggdec.serve.requests import read_form
from tests.serve.serving import Shouting, serving

CHECK = b"POST /v2/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 23\r\n\r\ntext=Hello.&language=en"


@pytest.fixture
def url() -> Iterator[str]:
    model = cast(Model, Shouting(0.6))
    with serving(make_app(model, model, hosts=known_as("127.0.0.1", "127.0.0.1", ["Desk.example"]))) as address:
        yield address


def sent(url: str, data: bytes) -> socket.socket:
    """A connection over which so much was sent."""
    connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=20)
    connection.sendall(data)
    return connection


def test_a_name_that_leads_to_this_machine_is_not_enough(url: str) -> None:
    for host in ("localhost:8081", "127.0.0.1", "[::1]:8081", "desk.EXAMPLE:80"):
        assert requests.get(f"{url}/healthz", headers={"Host": host}).status_code == 200
    for path in ("healthz", "v2/languages"):
        refused = requests.get(f"{url}/{path}", headers={"Host": "rebound.example:8081"})
        assert refused.status_code == 403
        assert "--allow-host rebound.example" in refused.text
    assert known_as("0.0.0.0", "0.0.0.0", []) == set()
    assert known_as("::1", "::1", []) == {"localhost", "127.0.0.1", "[::1]"}


@pytest.mark.parametrize("path", ["", "healthz", "languages", "translate", "v2x"])
def test_a_page_of_another_origin_reads_nothing_but_corrections(url: str, path: str) -> None:
    origin = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    for method in ("GET", "POST", "OPTIONS"):
        answer = requests.request(method, f"{url}/{path}", headers=origin)
        assert not any(name.lower().startswith("access-control") for name in answer.headers)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
def test_what_a_page_can_send_unasked_is_never_read_as_json(url: str, kind: str | None) -> None:
    headers: dict[str, str | bytes] = {} if kind is None else {"Content-Type": kind}
    json = '{"q": "Hello.", "text": "Hello.", "source": "en", "target": "en"}'
    answer = requests.post(f"{url}/translate", json, headers=headers)
    assert (answer.status_code, "missing q" in answer.text) in ((415, False), (400, True))
    headers["Content-Type"] = "Application/JSON; charset=utf-8"
    assert requests.post(f"{url}/translate", json, headers=headers).json()["translatedText"] == "HELLO."
    assert requests.post(f"{url}/v2/check", json, headers=headers).status_code == 415


def test_a_request_that_is_not_sent_in_time_is_ended(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SECONDS_TO_SEND", 0.3)
    for part in (b"", CHECK[:20], CHECK[:-5]):
        with sent(url, part) as slow:
            assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")
            assert slow.recv(1000) == b""
    with sent(url, CHECK) as waiting:  # longer, for its answer
        assert waiting.recv(1000).startswith(b"HTTP/1.1 200 ")
        waiting.sendall(CHECK[:20])
        while answer := waiting.recv(1000):
            assert b"HTTP/1.1" not in answer


def test_those_who_do_not_go_on_shut_nobody_out(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_SENDING", 20)
    slow = [sent(url, CHECK[: 20 if number % 2 else -5]) for number in range(40)]
    assert requests.post(f"{url}/v2/check", {"text": "Hello.", "language": "en"}).status_code == 200
    assert slow[0].recv(1000).startswith(b"HTTP/1.1 503 ")
    for connection in slow:
        connection.close()


@pytest.mark.parametrize("part", [" ", " &language=en&username=", "&language=en&apiKey=", "&", "%41", "="])
def test_no_form_takes_long_to_read(part: str) -> None:
    start = time.process_time()
    read_form(f"text={part * (2**18 // len(part))}")
    assert time.process_time() - start < 2
