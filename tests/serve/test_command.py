"""`aggdec serve` from its start to its end."""

import json
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from unittest.mock import Mock
from urllib.parse import urlencode

import pytest
import requests
import torch

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from tests.support.helpers import refused_with


def test_a_server_that_is_stopped_answers_what_it_has_taken() -> None:
    command = [
        sys.executable,
        "-m",
        "fairseq_aggdec.cli.verbs",
        "serve",
        "--demo",
        "--port",
        "0",
        "--threads",
        "1",
    ]
    text = " ".join(
        f"She have {number} brother and he go to school." for number in range(100)
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.match(r"http://(127\.0\.0\.1:\d+)", line)
        assert address, line
        assert "no authentication" in line
        client = HTTPConnection(address[1])
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        client.request(
            "POST", "/v2/check", urlencode({"text": text, "language": "en"}), form
        )
        # sent later: the text is taken
        assert requests.get(f"{address[0]}/healthz").text == "ok\n"
        process.send_signal(signal.SIGTERM)
        answer = client.getresponse()
        assert answer.status == 200
        assert len(json.load(answer)["matches"]) >= 100
        assert process.wait(10) == 0


def test_an_address_that_cannot_be_had_is_named() -> None:
    with pytest.raises(AggdecError, match=r"--host 192\.0\.2\.1 --port 0: "):
        aggdec(["serve", "--host", "192.0.2.1", "--port", "0"])


def test_a_lost_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_aggdec.serve.app.make_server", Mock())
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(
        torch.cuda,
        "synchronize",
        Mock(side_effect=RuntimeError("an illegal memory access")),
    )
    with pytest.raises(
        AggdecError,
        match="the GPU has failed and takes no more work from this process: start it",
    ):
        aggdec(["serve", "--port", "0"])


@pytest.mark.parametrize(
    "options, message",
    [
        ("--demo --translator model.pt", "give --translator or --demo, not both"),
        ("--translator-mode iad", "--translator-mode: there is no translator"),
    ],
)
def test_what_does_not_go_together_is_refused(options: str, message: str) -> None:
    with refused_with(message):
        aggdec(["serve", *options.split()])


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "fairseq_aggdec.serve.app", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(
        AggdecError,
        match=r"^aggdec serve needs uvicorn: pip install 'fairseq-aggdec\[serve\]'",
    ):
        aggdec(["serve"])
