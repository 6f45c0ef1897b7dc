"""A server in a thread of the test, and requests to it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from starlette.applications import Starlette

from fairseq_aggdec.serve.app import listen, make_server
from fairseq_aggdec.text.results import Hypothesis, Result, Sentence


@contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """The URL of a server that runs the application until the end of the block."""
    with listen("127.0.0.1", 0) as listening:
        server = make_server(app)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


class Shouting:
    """A model that writes capital letters, and remembers its batches. It fails at "bad" sentences, with their text."""

    source_lang = "en"
    target_lang = "en"
    corrects = False
    longest = 50

    def __init__(self, seconds: float = 0, reads: bool = False) -> None:
        self.seconds = seconds
        self.reads = reads
        self.batches: list[list[str]] = []
        self.drafts: dict[str, str] = {}

    def decode(self, texts: list[str], **settings: Any) -> list[Result]:
        """A batch takes `seconds`."""
        self.batches.append(texts)
        if self.reads:
            self.drafts |= zip(texts, settings["drafts"], strict=True)
        time.sleep(self.seconds)
        if any("bad" in text for text in texts):
            raise ValueError(f"cannot decode {texts}")
        return [self._result(text) for text in texts]

    translate = decode

    def _result(self, text: str) -> Result:
        loud = text.upper()
        nbest = [Hypothesis(loud, loud.split(), 0)]
        return Result(text, loud, [Sentence(text, 0, len(text), loud, nbest=nbest)])

    def reads_drafts(self, **settings: Any) -> bool:
        """Whether it was made so."""
        return self.reads
