"""Sentences of several requests are decoded together, once, in turns, and within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
import requests

from fairseq_aggdec.serve import batching
from fairseq_aggdec.serve.app import make_app
from fairseq_aggdec.serve.batching import Batcher
from fairseq_aggdec.text.model import Model
from tests.serve.serving import Shouting, serving


def run(model: Shouting, use: Callable[[Batcher], Awaitable[Any]]) -> Any:
    """What `use` makes of a batcher of this model."""

    async def main() -> Any:
        return await use(Batcher(cast(Model, model), worker))

    with ThreadPoolExecutor(1) as worker:
        return asyncio.run(main())


def test_texts_that_wait_are_decoded_together_and_each_gets_its_own() -> None:
    model = Shouting(0.05)
    texts = [f"The {number}th text is here.\n\n  It has two sentences. " for number in range(8)]
    results = run(model, lambda batcher: asyncio.gather(*map(batcher.decode_text, texts)))
    assert [result.text for result in results] == [text.upper() for text in texts]
    assert [(s.start, s.end) for s in results[3].sentences] == [(0, 21), (25, 46)]
    decoded = [sentence for batch in model.batches for sentence in batch]
    assert len(model.batches) <= 2
    assert len(decoded) == len(set(decoded)) == 9  # the second sentence is the same in all


def test_an_unchanged_sentence_is_not_decoded_again() -> None:
    model = Shouting()

    async def use(batcher: Batcher) -> None:
        await batcher.decode_text("One stays. Two chang. Three stays.")
        await batcher.decode_text("One stays. Two changes. Three stays.")
        assert (batcher.sentences, batcher.cache_hits) == (6, 2)

    run(model, use)
    assert model.batches == [["One stays.", "Two chang.", "Three stays."], ["Two changes."]]


def test_a_short_text_does_not_wait_for_the_end_of_a_long_one() -> None:
    model = Shouting(0.02)

    async def use(batcher: Batcher) -> None:
        long = asyncio.create_task(batcher.decode_text(" ".join(f"Sentence {number} ends." for number in range(320))))
        while not model.batches:
            await asyncio.sleep(0)
        await batcher.decode_text("I am short.")
        await long

    run(model, use)
    assert "I am short." in model.batches[1]
    assert len(model.batches) > 10


def test_a_sentence_that_fails_spoils_no_other() -> None:
    async def use(batcher: Batcher) -> list[Any]:
        texts = ["All is well.", "This is bad.", "All ends well."]
        return await asyncio.gather(*map(batcher.decode_text, texts), return_exceptions=True)

    well, bad, ends_well = run(Shouting(), use)
    assert (well.text, type(bad), ends_well.text) == ("ALL IS WELL.", ValueError, "ALL ENDS WELL.")


def test_what_is_too_much_is_refused_and_later_texts_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MOST_WAITING", 100)
    model = cast(Model, Shouting())
    with serving(make_app(model, model)) as url:
        many = requests.post(f"{url}/translate", data={"q": "A. B c.\n" * 10, "source": "en", "target": "en"})
        assert many.status_code == 200
        texts = [f"Sentence {number} ends." for number in range(101)]
        refused = requests.post(f"{url}/translate", json={"q": texts, "source": "en", "target": "en"})
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "2")
        never = requests.post(f"{url}/v2/check", data={"text": " ".join(texts), "language": "en"})
        assert (never.status_code, "Retry-After" in never.headers) == (413, False)
        long = requests.post(f"{url}/translate", data={"q": "a" * 300_000, "source": "en", "target": "en"})
        assert long.status_code == 413
        assert "too long" in long.json()["error"]
        assert requests.post(f"{url}/v2/check", data={"text": "Short.", "language": "en"}).status_code == 200


def test_a_request_that_takes_too_long_is_ended_and_its_sentences_are_there_when_it_comes_again() -> None:
    model = cast(Model, Shouting(0.5))
    with serving(make_app(model, model, seconds=0.3)) as url:
        answers = [requests.post(f"{url}/v2/check", data={"text": "Slow.", "language": "en"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 200]


def test_an_error_is_logged_without_the_text(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture) -> None:
    model = cast(Model, Shouting())
    with serving(make_app(model, model)) as url:
        answer = requests.post(f"{url}/v2/check", data={"text": "My bad secret.", "language": "en"})
        good = requests.get(f"{url}/v2/check?language=en&text=My+secret.")
        assert 'aggdec_requests_total{path="/v2/check",status="500"} 1' in requests.get(f"{url}/metrics").text
    assert (answer.status_code, good.status_code) == (500, 200)
    assert "ValueError at /v2/check" in caplog.text
    assert "secret" not in caplog.text + answer.text + "".join(capfd.readouterr())
