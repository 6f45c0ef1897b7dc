"""Whom the server answers: names it is asked by, pages of other origins, hostile clients."""

import time
from collections.abc import Iterator
from typing import cast

import pytest
import requests

from fairseq_aggdec.model import Model
from fairseq_aggdec.serve.app import make_app
from fairseq_aggdec.serve.connections import known_as
from fairseq_aggdec.serve.requests import read_form
from tests.serve.serving import Shouting, serving


@pytest.fixture
def url() -> Iterator[str]:
    model = cast(Model, Shouting(0.6))
    with serving(
        make_app(
            model, model, hosts=known_as("127.0.0.1", "127.0.0.1", ["Desk.example"])
        )
    ) as address:
        yield address


def test_a_name_that_leads_to_this_machine_is_not_enough(url: str) -> None:
    for host in ("localhost:8081", "127.0.0.1", "[::1]:8081", "desk.EXAMPLE:80"):
        assert requests.get(f"{url}/healthz", headers={"Host": host}).status_code == 200
    for path in ("healthz", "v2/languages"):
        refused = requests.get(
            f"{url}/{path}", headers={"Host": "rebound.example:8081"}
        )
        assert refused.status_code == 403
        assert "--allow-host rebound.example" in refused.text
    assert known_as("0.0.0.0", "0.0.0.0", []) == set()
    assert known_as("::1", "::1", []) == {"localhost", "127.0.0.1", "[::1]"}


@pytest.mark.parametrize("path", ["", "healthz", "languages", "translate", "v2x"])
def test_a_page_of_another_origin_reads_nothing_but_corrections(
    url: str, path: str
) -> None:
    origin = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    for method in ("GET", "POST", "OPTIONS"):
        answer = requests.request(method, f"{url}/{path}", headers=origin)
        assert not any(
            name.lower().startswith("access-control") for name in answer.headers
        )
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None],
)
def test_what_a_page_can_send_unasked_is_never_read_as_json(
    url: str, kind: str | None
) -> None:
    headers: dict[str, str | bytes] = {} if kind is None else {"Content-Type": kind}
    json = '{"q": "Hello.", "text": "Hello.", "source": "en", "target": "en"}'
    answer = requests.post(f"{url}/translate", json, headers=headers)
    assert (answer.status_code, "missing q" in answer.text) in (
        (415, False),
        (400, True),
    )
    headers["Content-Type"] = "Application/JSON; charset=utf-8"
    assert (
        requests.post(f"{url}/translate", json, headers=headers).json()[
            "translatedText"
        ]
        == "HELLO."
    )
    assert requests.post(f"{url}/v2/check", json, headers=headers).status_code == 415


@pytest.mark.parametrize(
    "part", [" ", " &language=en&username=", "&language=en&apiKey=", "&", "%41", "="]
)
def test_no_form_takes_long_to_read(part: str) -> None:
    start = time.process_time()
    read_form(f"text={part * (2**18 // len(part))}")
    assert time.process_time() - start < 2
