"""Texts that grow: answers are those without a draft, no origin sees another's session, and what is kept has bounds."""

from collections.abc import Iterator
from typing import Any, cast
from unittest import mock

import pytest
import requests

from fairseq_aggdec.demo.shipped import SHIPPED
from fairseq_aggdec.model import Model, load
from fairseq_aggdec.serve import sessions
from fairseq_aggdec.serve.app import make_app
from fairseq_aggdec.serve.sessions import Sessions
from fairseq_aggdec.text.results import Result
from tests.serve.serving import Shouting, serving


def translate(url: str, q: Any, origin: str = "", **fields: Any) -> requests.Response:
    headers = {"Origin": origin} if origin else {}
    form = {"q": q, "source": "en", "target": "de", **fields}
    return requests.post(f"{url}/translate", json=form, headers=headers)


@pytest.fixture(scope="module")
def translator() -> Model:
    """The shipped one without its drafter, as a model of ones own."""
    folder = SHIPPED["mt"].folder
    return load(
        folder / "model.pt",
        tokenizer="moses",
        moses_no_escape=True,
        moses_no_dash_splits=True,
    )


@pytest.fixture(scope="module")
def url(translator: Model) -> Iterator[str]:
    with serving(make_app(translator, translator, seconds=300)) as address:
        yield address


@pytest.fixture
def shouting() -> Shouting:
    return Shouting(reads=True)


@pytest.fixture
def loud(shouting: Shouting) -> Iterator[str]:
    """A server of a model that shows its drafts."""
    model = cast(Model, shouting)
    shouting.target_lang = "de"
    with serving(make_app(model, model)) as address:
        yield address


@pytest.mark.parametrize("kind", ["draft", "session"])
def test_a_growing_text_is_answered_as_without_a_draft_in_fewer_passes(
    url: str, translator: Model, kind: str
) -> None:
    # texts that are not in the cache
    text = f"I have a {kind} here. My brother has three big dogs and a cat."
    growing = [text[:end] for end in range(30, len(text) + 1, 7)]
    written = [""]
    decoded: list[Result] = []
    plain = translator.translate

    def recording(sentences: list[str], **settings: Any) -> list[Result]:
        decoded.extend(plain(sentences, **settings))
        return decoded[-len(sentences) :]

    with mock.patch.object(translator, "translate", recording):
        for part in growing:
            last = {"draft": written[-1], "session": kind}[kind]
            answer = translate(url, part, **{kind: last})
            assert answer.status_code == 200, answer.text
            written.append(answer.json()["translatedText"])
    assert written[1:] == [result.text for result in plain(growing)]
    again = [plain(result.source) for result in decoded]
    assert passes(decoded) < 0.8 * passes(again)


def passes(results: list[Result]) -> int:
    return sum(one.iterations for result in results for one in result.sentences)


def test_a_session_drafts_with_the_last_output_and_a_request_with_its_own(
    loud: str, shouting: Shouting
) -> None:
    translate(loud, "One stays. Two chang.", session="a")
    translate(loud, "One stays. Two changes.", session="a")
    translate(loud, ["Three.", "Four fo."], draft=["Drei.", "Vier vie. Fünf."])
    translate(loud, "Six.", session="a", draft="Sechs.")
    assert shouting.drafts == {
        "One stays.": "",
        "Two chang.": "",
        "Two changes.": "TWO CHANG.",
        "Three.": "Drei.",
        "Four fo.": "Vier vie.",
        "Six.": "Sechs.",
    }


def test_no_origin_has_the_session_of_another(loud: str, shouting: Shouting) -> None:
    origins = ["", "https://one.example", "https://other.example"]
    for number, origin in enumerate(origins):
        translate(loud, f"Secret {number} of", origin, session="s")
        translate(loud, f"Secret {number} of mine.", origin, session="s")
        assert shouting.drafts[f"Secret {number} of"] == ""
        assert shouting.drafts[f"Secret {number} of mine."] == f"SECRET {number} OF"


@pytest.mark.parametrize(
    ("q", "fields", "named"),
    [
        ("Hello.", {"draft": 3}, "draft must be"),
        ("Hello.", {"draft": ["Hallo."]}, "draft must be"),
        (["Hello.", "You."], {"draft": ["Hallo."]}, "draft must be"),
        (["Hello."], {"draft": [None]}, "draft must be"),
        (["Hello."], {"draft": "Hallo."}, "draft must be"),
        ("Hello.", {"session": 3}, "session must be"),
        ("Hello.", {"session": "s" * 10_000}, "at most 100 characters"),
    ],
)
def test_a_wrong_field_is_named(
    loud: str, q: Any, fields: dict[str, Any], named: str
) -> None:
    answer = translate(loud, q, **fields)
    assert (answer.status_code, named in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    "draft",
    [
        "Ich wohne " * 10_000,
        "w" * 100_000,
        "Я живу. " * 4_000,
        "我住在一个小房子里。我的兄弟有三只大狗。",
        "\0\x07 Ich \x1b[0m wohne\u2028 \ud83d <pad> </s> <<unk>> @@",
    ],
)
def test_no_draft_does_harm(url: str, translator: Model, draft: str) -> None:
    text = f"My {len(draft)} dogs live in a house."
    answer = translate(url, text, draft=draft, session="\0 \ud83d")
    assert answer.json()["translatedText"] == translator.translate(text).text


def test_what_is_kept_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    kept = Sessions(lambda: now)
    for number in range(10_000):
        kept.keep(("", str(number)), {"a": "b"})
    assert len(kept) == sessions.MOST_SESSIONS
    assert kept.last(("", "0")) == {}
    assert kept.last(("", "9999")) == {"a": "b"}
    # minutes later
    now = sessions.SECONDS - 1
    kept.keep(("", "new"), {"a": "b"})
    now = sessions.SECONDS + 1
    assert (kept.last(("", "9999")), len(kept)) == ({}, 1)
    # large ones
    monkeypatch.setattr(sessions, "MOST_KEPT", 5000)
    for number in range(100):
        kept.keep(("", "same"), {"a": "b" * 1000})
        kept.keep(("", f"of 1000 {number}"), {"a": "b" * 1000})
    assert 2 <= len(kept) <= 4
    kept.keep(("", "too large"), {"a": "b" * 6000})
    assert len(kept) == 0
