"""Sentences of several requests are decoded together, once, in turns, and within limits."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from socket import create_connection, socket
from threading import Event
from typing import Any, cast

import pytest
import requests

from fairseq_aggdec.model import Model
from fairseq_aggdec.serve import batching
from fairseq_aggdec.serve.app import make_app
from fairseq_aggdec.serve.batching import Batcher
from fairseq_aggdec.serve.requests import SHORT
from fairseq_aggdec.text.sentences import split_text
from tests.serve.serving import Shouting, serving


def run(model: Shouting, use: Callable[[Batcher], Awaitable[Any]]) -> Any:
    """What `use` makes of a batcher of this model."""

    async def main() -> Any:
        return await use(Batcher(cast(Model, model), worker))

    with ThreadPoolExecutor(1) as worker:
        return asyncio.run(main())


def check(url: str, text: str, **options: Any) -> requests.Response:
    return requests.post(f"{url}/v2/check", {"text": text, "language": "en"}, **options)


def test_texts_that_wait_are_decoded_together_and_each_gets_its_own() -> None:
    model = Shouting(0.05)
    texts = [
        f"The {number}th text is here.\n\n  It has two sentences. "
        for number in range(8)
    ]
    results = run(
        model,
        lambda batcher: asyncio.gather(
            *(batcher.decode_texts([text]) for text in texts)
        ),
    )
    assert [result.text for (result,) in results] == [text.upper() for text in texts]
    assert [(s.start, s.end) for s in results[3][0].sentences] == [(0, 21), (25, 46)]
    decoded = [sentence for batch in model.batches for sentence in batch]
    assert len(model.batches) <= 2
    # the second sentence is the same in all
    assert len(decoded) == len(set(decoded)) == 9


def test_an_unchanged_sentence_is_not_decoded_again() -> None:
    model = Shouting()

    async def use(batcher: Batcher) -> None:
        await batcher.decode_texts(["One stays. Two chang. Three stays."])
        await batcher.decode_texts(["One stays. Two changes. Three stays."])

    run(model, use)
    assert model.batches == [
        ["One stays.", "Two chang.", "Three stays."],
        ["Two changes."],
    ]


@pytest.mark.parametrize("unit", ["Sentence {} ends. ", "and number {} has no end "])
def test_a_short_text_does_not_wait_for_the_end_of_a_long_one(unit: str) -> None:
    model = Shouting(0.05)
    text = "".join(unit.format(number) for number in range(400)).strip()

    async def use(batcher: Batcher) -> None:
        long = asyncio.create_task(batcher.decode_texts([text]))
        while not model.batches:
            await asyncio.sleep(0)
        await batcher.decode_texts(["I am short.", "Sentence 399 ends."])
        assert not long.done()
        assert [result.text for result in await long] == [text.upper()]
        assert batcher.waiting == 0

    run(model, use)
    assert {"I am short.", "Sentence 399 ends."} <= {
        part for batch in model.batches[1:4] for part in batch
    }
    assert len(model.batches) > 8
    assert (
        max(len("".join(batch)) for batch in model.batches) <= batching.BATCH_CHARACTERS
    )
    assert (
        max(len(part) for batch in model.batches for part in batch)
        <= batching.SUBWORD * model.longest
    )


def test_a_word_that_is_too_long_for_the_model_is_left_as_it_is() -> None:
    text = f"Say {'a' * 50_000} now."
    (result,) = run(Shouting(), lambda batcher: batcher.decode_texts([text]))
    assert result.text == f"SAY {'a' * 50_000} NOW."


def test_while_a_long_text_is_read_others_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = Event()
    goes_on = Event()

    def split(text: str, *settings: Any, **more: Any) -> Any:
        if len(text) > SHORT:
            reads.set()
            goes_on.wait(20)
        return split_text(text, *settings, **more)

    monkeypatch.setattr(batching, "split_text", split)
    model = cast(Model, Shouting())
    with serving(make_app(model, model)) as url, ThreadPoolExecutor(1) as client:
        long = client.submit(check, url, "He is here. " * 1000)
        assert reads.wait(20)
        assert requests.get(f"{url}/healthz").text == "ok\n"
        assert check(url, "Short.").status_code == 200
        assert not long.done()
        goes_on.set()
        assert long.result().status_code == 200


def test_a_sentence_that_fails_spoils_no_other() -> None:
    async def use(batcher: Batcher) -> list[Any]:
        texts = ["All is well.", "This is bad.", "All ends well."]
        found = [batcher.decode_texts([text]) for text in texts]
        return await asyncio.gather(*found, return_exceptions=True)

    (well,), bad, (ends_well,) = run(Shouting(), use)
    assert (well.text, type(bad), ends_well.text) == (
        "ALL IS WELL.",
        ValueError,
        "ALL ENDS WELL.",
    )


def test_what_is_too_much_is_refused_and_later_texts_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "MOST_WAITING", 100)
    shouting = Shouting(0.3)
    model = cast(Model, shouting)
    with serving(make_app(model, model)) as url, ThreadPoolExecutor(1) as client:
        many = requests.post(
            f"{url}/translate",
            data={"q": "A. B c.\n" * 10, "source": "en", "target": "en"},
        )
        assert many.status_code == 200
        texts = [f"Sentence {number} ends." for number in range(150)]

        def ask(texts: list[str]) -> requests.Response:
            return requests.post(
                f"{url}/translate", json={"q": texts, "source": "en", "target": "en"}
            )

        taken = client.submit(ask, texts[:100])
        while len(shouting.batches) < 2:
            time.sleep(0.01)
        refused = ask(texts[100:])
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "2")
        assert (
            ask(["A short one is taken."]).status_code
            == taken.result().status_code
            == 200
        )
        never = check(url, " ".join(texts))
        assert (never.status_code, "Retry-After" in never.headers) == (413, False)
        long = requests.post(
            f"{url}/translate",
            data={"q": "a" * 300_000, "source": "en", "target": "en"},
        )
        assert long.status_code == 413
        assert "too long" in long.json()["error"]
        assert check(url, "Short.").status_code == 200


def test_a_long_text_is_refused_before_it_is_sent_while_others_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "MOST_TAKEN", 3 * SHORT)
    model = cast(Model, Shouting())
    with serving(make_app(model, model)) as url:

        def answer_to(client: socket, header: str) -> bytes:
            """What the server says to the headers of a request, without its body."""
            words = f"POST /v2/check HTTP/1.1\r\nHost: localhost\r\n{header}\r\nExpect: 100-continue\r\n\r\n"
            client.sendall(words.encode())
            return client.recv(1000)

        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        long = f"Content-Length: {2 * SHORT}"
        with (
            create_connection(address, 20) as taken,
            create_connection(address, 20) as refused,
        ):
            assert b"100 Continue" in answer_to(taken, long)
            assert b" 429 " in answer_to(refused, long)
            assert check(url, "Short.").status_code == 200
            assert check(url, "Long. " * 40_000).status_code == 429, (
                "also to clients that listen when all is sent"
            )
        while check(url, "I am. " * 2000).status_code == 429:
            time.sleep(0.01)  # until the server knows that the first client has gone


def test_a_text_that_comes_without_its_length_is_short_until_more_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "MOST_TAKEN", SHORT)
    model = cast(Model, Shouting())
    with serving(make_app(model, model)) as url:

        def send(*more: bytes) -> int:
            return requests.post(
                f"{url}/v2/check", iter([b"language=en&text=I am.", *more])
            ).status_code

        assert [send(), send(b" " * SHORT)] == [200, 429]


def test_what_nobody_waits_for_leaves_the_queue() -> None:
    shouting = Shouting(0.3)
    model = cast(Model, shouting)
    texts = [f"Sentence {number} ends." for number in range(300)]
    with serving(make_app(model, model)) as url, ThreadPoolExecutor(1) as client:
        with pytest.raises(requests.ReadTimeout):
            check(url, " ".join(texts), timeout=0.1)
        same = client.submit(check, url, texts[-1])
        other = check(url, "One more.")
    assert (same.result().status_code, other.status_code) == (200, 200)
    assert sum(map(len, shouting.batches)) < 200


def test_a_request_that_takes_too_long_is_ended_and_its_sentences_are_there_when_it_comes_again() -> (
    None
):
    model = cast(Model, Shouting(0.5))
    with serving(make_app(model, model, seconds=0.3)) as url:
        answers = [check(url, "Slow.") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 200]


def test_a_server_ends_where_the_gpu_is_lost_when_it_has_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = cast(Model, Shouting())
    app = make_app(model, model)
    with serving(app) as url:
        for is_lost in (False, True):
            assert not app.state.server.should_exit
            monkeypatch.setattr(
                "fairseq_aggdec.serve.app.gpu_is_lost", lambda lost=is_lost: lost
            )
            assert check(url, "A bad one.").status_code == 500
        assert app.state.server.should_exit


def test_an_error_is_logged_without_the_text(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture
) -> None:
    model = cast(Model, Shouting())
    with serving(make_app(model, model)) as url:
        answer = check(url, "My bad secret.")
        good = requests.get(f"{url}/v2/check?language=en&text=My+secret.")
    assert (answer.status_code, good.status_code) == (500, 200)
    assert "ValueError at /v2/check" in caplog.text
    assert "secret" not in caplog.text + answer.text + "".join(capfd.readouterr())
