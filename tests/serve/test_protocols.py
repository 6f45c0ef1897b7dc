"""Clients of LanguageTool and LibreTranslate get from the shipped models what `Model.decode` gives."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from language_tool_python import LanguageTool
from libretranslatepy import LibreTranslateAPI

from fairseq_aggdec.demo.shipped import CAREFUL
from fairseq_aggdec.model import Model, load
from fairseq_aggdec.serve.app import make_app
from tests.serve.serving import serving

TEXT = (
    "😀 She have two brother. 他说 “hello”.\r\n\r\n"
    # a wrapped line
    "He go to school every day 🎉🎉 and\tlike it. I has a 𝔡og\r\nyesterday when he go home"
    "\r\nThe two child\tare big\t2.9"  # a table's row
)


@pytest.fixture(scope="module")
def corrector() -> Model:
    return load.shipped("gec")


@pytest.fixture(scope="module")
def translator() -> Model:
    return load.shipped("mt")


@pytest.fixture(scope="module")
def url(corrector: Model, translator: Model) -> Iterator[str]:
    with serving(make_app(corrector, translator, **CAREFUL)) as address:
        yield address


def applied(text: str, matches: list[dict[str, Any]]) -> str:
    """The text with all matches taken, as a client does that counts in UTF-16 code units."""
    units = text.encode("utf-16-le")
    for match in reversed(matches):
        start = 2 * match["offset"]
        end = 2 * (match["offset"] + match["length"])
        units = (
            units[:start]
            + match["replacements"][0]["value"].encode("utf-16-le")
            + units[end:]
        )
    return units.decode("utf-16-le")


def test_language_tool_python_corrects_as_decode_does(
    url: str, corrector: Model
) -> None:
    with LanguageTool("en-US", remote_server=url) as client:
        corrected = client.correct(TEXT)
        (match,) = client.check("She have two brothers.")
    assert corrected == corrector.decode(TEXT, **CAREFUL).text != TEXT
    assert (match.offset, match.error_length, match.replacements) == (4, 4, ["has"])


@pytest.mark.parametrize(
    "text", [TEXT, "yesterday he go", "   ", "", "I want go home."]
)
def test_matches_are_in_order_have_a_length_and_make_the_correction(
    url: str, corrector: Model, text: str
) -> None:
    form = {"text": text, "language": "auto"}
    answer = requests.post(
        f"{url}/v2/check/",
        data=form,
        headers={"Content-Type": "text/plain"},
        allow_redirects=False,
    ).json()
    matches = answer["matches"]
    ends = [match["offset"] + match["length"] for match in matches]
    assert all(match["length"] for match in matches)
    assert all(
        end <= match["offset"] for end, match in zip(ends, matches[1:], strict=False)
    )
    assert applied(text, matches) == corrector.decode(text, **CAREFUL).text
    assert requests.get(f"{url}/v2/check", params=form).json() == answer


def test_markup_is_kept_and_what_stands_for_it_is_read(
    url: str, corrector: Model
) -> None:
    sent = "<p title='🎉'>She have two <b>brother</b>.<br/>He ha<i>ve a dog.</i> "
    sent += "I have two brot&#104;er and two sister."
    means = {"<p title='🎉'>": None, "<br/>": "\n\n", "brot&#104;er": "brother"}
    parts = [
        {"markup": part, "interpretAs": means.get(part)}
        if part in means or part.startswith("<")
        else {"text": part}
        for part in re.split(r"(<[^>]*>|brot&#104;er)", sent)
    ]
    data = json.dumps({"annotation": parts})
    matches = requests.post(
        f"{url}/v2/check", data={"data": data, "language": "en"}
    ).json()["matches"]
    plain = "She have two brother.\n\nHe have a dog. I have two brother and two sister."
    corrected = (
        "She has two brothers.\n\nHe has a dog. I have two brothers and two sisters."
    )
    assert corrector.decode(plain, **CAREFUL).text == corrected
    expected = (
        sent.replace("She have", "She has")
        .replace("brother", "brothers")
        .replace("sister", "sisters")
    )
    assert applied(sent, matches) == expected
    assert [match["sentence"] for match in matches[:2]] == ["She have two brother."] * 2


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"text": "Hallo.", "language": "de-DE"}, "'de-DE' is not a language code"),
        ({"text": "Hello."}, "Missing 'language'"),
        ({"language": "en"}, "'text' or the 'data'"),
        ({"data": '{"annotation": [3]}', "language": "en"}, "'annotation'"),
        ({"data": "[", "language": "en"}, "not a JSON object"),
    ],
)
def test_a_wrong_check_is_refused_in_plain_text(
    url: str, form: dict[str, str], said: str
) -> None:
    answer = requests.post(f"{url}/v2/check", data=form)
    assert (answer.status_code, answer.headers["Content-Type"]) == (
        400,
        "text/plain; charset=utf-8",
    )
    assert said in answer.text


@pytest.mark.parametrize(
    ("switches", "count"),
    [
        ({"disabledCategories": "TYPOS, GRAMMAR"}, 0),
        ({"enabledOnly": "true", "enabledCategories": "GRAMMAR"}, 2),
        ({"disabledRules": "A, AGGDEC_CORRECTION"}, 0),
        ({"disabledRules": "A"}, 2),
        ({"enabledOnly": "true", "enabledRules": "A"}, 0),
    ],
)
def test_rules_and_categories_are_switched(
    url: str, switches: dict[str, str], count: int
) -> None:
    form = {"text": "She have two brother.", "language": "en", **switches}
    assert len(requests.post(f"{url}/v2/check", data=form).json()["matches"]) == count


def test_a_form_of_libreoffice_that_encodes_nothing_is_read_as_it_stands(
    url: str, corrector: Model
) -> None:
    text = "Tom & Jerry has two cat. It are 100%20 done in C++."
    answer = requests.post(
        f"{url}//v2/check", data=f"text={text}&language=en-US".encode()
    )
    assert (
        applied(text, answer.json()["matches"])
        == corrector.decode(text, **CAREFUL).text
        != text
    )


def test_a_page_of_another_origin_may_ask(url: str) -> None:
    origin = {
        "Origin": "https://editor.example",
        "Access-Control-Request-Method": "POST",
    }
    for answer in (
        requests.options(f"{url}/v2/check", headers=origin),
        requests.head(f"{url}/v2/languages", headers=origin),
        requests.head(f"{url}/v2/check", headers=origin),
    ):
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (
            200,
            "*",
        )
    assert requests.options(f"{url}/v2/check").status_code == 200


def test_libretranslatepy_translates_as_translate_does(
    url: str, translator: Model
) -> None:
    client = LibreTranslateAPI(url)
    text = "Two men are playing football.\n\nA dog runs in the snow."
    expected = translator.translate(text).text
    assert (
        client.translate(text, "en", "de")
        == expected
        == "\n\n".join(expected.split("\n\n"))
    )
    assert {language["code"] for language in client.languages()} == {"en", "de"}


def test_a_list_is_translated_one_by_one_and_half_an_emoji_is_no_error(
    url: str, translator: Model
) -> None:
    texts = [
        "Two men are playing football.",
        "",
        "A dog \ud83d runs. Where do you live?",
    ]
    answer = requests.post(
        f"{url}/translate", json={"q": texts, "source": "auto", "target": "de"}
    ).json()
    kept = "A dog \ufffd runs."
    assert answer["translatedText"] == [
        translator.translate(texts[0]).text,
        "",
        f"{kept} Wo wohnt ihr?",
    ]
    assert answer["notes"] == [
        f"'{kept}': '\ufffd' is unknown to the model; not translated"
    ]
    assert [found["language"] for found in answer["detectedLanguage"]] == ["en"] * 3
    data = json.dumps({"text": "She have two \ud83d brothers."})
    assert (
        requests.post(f"{url}/v2/check", data={"data": data, "language": "en"}).json()[
            "matches"
        ][0]["offset"]
        == 4
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"q": "Hello.", "source": "en"}, "missing target"),
        ({"q": "Hello.", "source": "en", "target": "fr"}, "fr is not supported"),
        ({"q": [1], "source": "en", "target": "de"}, "q must be"),
        (
            {"q": "<p>", "source": "en", "target": "de", "format": "html"},
            "html is not supported",
        ),
    ],
)
def test_a_wrong_translation_is_refused_in_json(
    url: str, fields: dict[str, Any], said: str
) -> None:
    answer = requests.post(f"{url}/translate", json=fields)
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_without_a_translator_the_server_says_how_to_have_one(corrector: Model) -> None:
    with serving(make_app(corrector)) as address:
        refused = requests.post(
            f"{address}/translate", data={"q": "Hello.", "source": "en", "target": "de"}
        )
        assert (refused.status_code, "--demo" in refused.json()["error"]) == (404, True)
        assert requests.get(f"{address}/languages").json() == []


def test_the_page_asks_nobody_else(url: str) -> None:
    page = requests.get(url)
    assert page.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "http" not in page.text
    assert requests.get(f"{url}/healthz").text == "ok\n"
    assert requests.get(f"{url}/..%2f..%2fetc/passwd").status_code == 404
