"""Sentences of many requests, decoded together: a queue with a bound, and a cache of sentences."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from fairseq_aggdec.serve.requests import MOST_BYTES, SHORT, in_thread
from fairseq_aggdec.serve.sessions import Growing, Sessions, drafts_of
from fairseq_aggdec.text.edits import result_of
from fairseq_aggdec.text.results import Edit, Result, Sentence
from fairseq_aggdec.text.sentences import Span, cut_at_clauses, split_text

if TYPE_CHECKING:
    from fairseq_aggdec.model import Model

BATCH = 32
"""the most sentences that are decoded at once: others wait for them"""
BATCH_CHARACTERS = 500
"""the most characters of several sentences that are decoded at once"""
SUBWORD = 8
"""characters; a sentence has more in a subword only if it is cut though the model would take it whole"""
MOST_WAITING = MOST_CACHED = 4000
"""sentences in the queue, beyond which long texts are refused (short ones beyond the double), and in the cache"""
MOST_TAKEN = 2 * MOST_BYTES
"""bytes of texts that are read, wait or are decoded, beyond which long texts are refused unread"""
LONGEST_CACHED = 1000
"""characters of a sentence in the cache"""


def busy() -> HTTPException:
    """The refusal of a request that may be sent again."""
    return HTTPException(
        429, "too many texts are waiting: try again later", {"Retry-After": "2"}
    )


class Batcher:
    """One model with its queue and its cache. All methods are for one event loop; only `worker` decodes.

    Requests take turns in the queue by the characters that they have had: a short text does not wait for the end of a
    long one. What waits there is a sentence, or a part of one that is too long for the model.
    """

    def __init__(
        self,
        model: Model,
        worker: Executor,
        language: str | None = None,
        **settings: Any,
    ) -> None:
        """
        Args:
            model: decodes the sentences, each as one text.
            worker: one thread. Several batchers may share it; their batches then take turns.
            language: the ISO code of the texts' language; None: the model's `source_lang`.
            settings: other arguments of `model.decode`.
        """
        self.model = model
        self.worker = worker
        self.language: str = language or model.source_lang
        self._settings = settings
        self._reads_drafts = model.reads_drafts(**settings)
        self._drafts: dict[str, str] = {}  # of sentences of the queue
        self.sessions = Sessions()
        # the queue: of each sentence the characters that its request has had before
        self._turns: dict[str, int] = {}
        self._turn = 0  # of the sentences that are decoded now
        self._asked: dict[str, asyncio.Future[Result]] = {}
        # how many requests wait for each sentence of `_asked`
        self._requests: Counter[str] = Counter()
        self._taken = 0  # bytes of texts
        self._cache: OrderedDict[str, Result] = OrderedDict()
        self._work: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many sentences are in the queue."""
        return len(self._turns)

    @contextmanager
    def taking(self, request: Request) -> Iterator[Callable[[int], None]]:
        """The time from a request's headers to its answer: a long text is refused before it is sent, read and split.

        Gives a function that is to be told how many bytes have come: a text that comes without its length is a short
        one until it has more.

        Raises:
            HTTPException: the text is long, and as many wait as can (429). The function raises it, too.
        """
        counted = 0

        def count(size: int) -> None:
            nonlocal counted
            more = size - counted
            if size > SHORT and (
                self._taken + more > MOST_TAKEN or self.waiting >= MOST_WAITING
            ):
                raise busy()
            self._taken += more
            counted = size

        def has_come(size: int) -> None:
            if size > counted:  # its length was not known, and may be any
                count(MOST_BYTES)

        # by its header; without one it counts as a short text
        count(
            0
            if request.method == "GET"
            else min(int(request.headers.get("Content-Length", SHORT)), MOST_BYTES)
        )
        try:
            yield has_come
        finally:
            self._taken -= counted

    async def decode_texts(
        self, texts: list[str], growing: Growing | None = None
    ) -> list[Result]:
        """The results of a request's texts, as `Model.decode` gives them.

        `growing`: their last outputs, which are drafts where the settings read any; no output depends on them.

        Raises:
            HTTPException: too many sentences wait (429), or would be too many even if none waited (413).
        """
        size = sum(map(len, texts))
        spans = await in_thread(size, lambda: [self._spans(text) for text in texts])
        # as one line, a sentence is cut no further when it is decoded alone; places in it stay the same
        parts = [
            [re.sub(r"[^\S\t]", " ", text[start:end]) for start, end in found]
            for text, found in zip(texts, spans, strict=True)
        ]
        sentences = [part for some in parts for part in some]
        if growing is None or not self._reads_drafts:
            decoded = await self._decode(sentences, {})
        else:
            size += sum(map(len, growing.drafts))
            last = self.sessions.last(growing.session) if growing.session else {}
            language = self.model.target_lang or "en"
            drafts = await in_thread(
                size, drafts_of, parts, growing.drafts, language, last
            )
            decoded = await self._decode(sentences, drafts)
            if growing.session:
                outputs = zip(sentences, map(_written, decoded), strict=True)
                self.sessions.keep(growing.session, dict(outputs))
        results = iter(decoded)
        return [
            self._joined(text, found, results)
            for text, found in zip(texts, spans, strict=True)
        ]

    def _spans(self, text: str) -> list[Span]:
        """Where the sentences of a text are, or their parts; a word that is too long for the model is left out."""
        most = SUBWORD * self.model.longest
        spans = []
        for start, end in split_text(text, self.language, self.model.corrects):
            parts = cut_at_clauses(text[start:end], lambda part: len(part) <= most)
            spans += [
                (start + first, start + last)
                for first, last in parts
                if last - first <= most
            ]
        return spans

    def _joined(
        self, text: str, spans: list[Span], results: Iterator[Result]
    ) -> Result:
        sentences: list[Sentence] = []
        edits: list[Edit] = []
        for (start, _), result in zip(spans, results, strict=False):
            for part in result.sentences:
                first = start + part.start
                last = start + part.end
                source = text[first:last]
                sentences.append(replace(part, source=source, start=first, end=last))
            edits += [
                replace(edit, offset=edit.offset + start) for edit in result.edits
            ]
        return result_of(text, sentences, edits if self.model.corrects else None)

    async def _decode(
        self, sentences: list[str], drafts: dict[str, str]
    ) -> list[Result]:
        # what has been decoded before
        known = {
            sentence: self._cache[sentence]
            for sentence in sentences
            if sentence in self._cache
        }
        for sentence in known:
            self._cache.move_to_end(sentence)  # the most recent ones are kept
        unknown = [
            sentence for sentence in dict.fromkeys(sentences) if sentence not in known
        ]
        # there is a bound for what waits
        new = sum(sentence not in self._asked for sentence in unknown)
        if len(sentences) > MOST_WAITING:
            raise HTTPException(
                413, f"the text is too long: at most {MOST_WAITING} sentences are taken"
            )
        if self.waiting + new > (MOST_WAITING if new > BATCH else 2 * MOST_WAITING):
            raise busy()
        # each sentence's turn comes after as many characters as its request has had
        turn = self._turn
        for sentence in unknown:
            turn += len(sentence)
            if sentence not in self._asked:
                self._asked[sentence] = asyncio.get_running_loop().create_future()
            elif turn >= self._turns.get(sentence, 0):
                continue  # it is decoded now, or another request has it decoded sooner
            self._turns[sentence] = turn
            self._drafts[sentence] = drafts.get(sentence, "")
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._decode_queue())
        # wait for those of this request
        asked = {sentence: self._asked[sentence] for sentence in unknown}
        self._requests.update(unknown)
        try:
            if asked:
                # not gather: a request that gives up must not cancel what others may wait for
                await asyncio.wait(asked.values())
        finally:
            self._leave(unknown)
        return [
            known[sentence] if sentence in known else asked[sentence].result()
            for sentence in sentences
        ]

    def _leave(self, sentences: list[str]) -> None:
        """A request waits no longer for these sentences; those that no other waits for leave the queue."""
        self._requests.subtract(sentences)
        for sentence in sentences:
            if not self._requests[sentence]:
                del self._requests[sentence]
                if self._turns.pop(sentence, None):
                    del self._asked[sentence], self._drafts[sentence]

    async def _decode_queue(self) -> None:
        loop = asyncio.get_running_loop()
        while sentences := self._next_batch():
            drafts = [self._drafts.pop(sentence) for sentence in sentences]
            results = await loop.run_in_executor(
                self.worker, self._decode_batch, sentences, drafts
            )
            for sentence, result in zip(sentences, results, strict=True):
                future = self._asked.pop(sentence)
                if isinstance(result, Exception):
                    future.set_exception(result)
                    # else asyncio logs it, with the sentence, when nobody waits any more
                    future.exception()
                    continue
                future.set_result(result)
                if len(sentence) <= LONGEST_CACHED:
                    self._cache[sentence] = result
            while len(self._cache) > MOST_CACHED:
                self._cache.popitem(last=False)

    def _next_batch(self) -> list[str]:
        """Those whose turn it is; none where the queue is empty."""
        batch: list[str] = []
        room = BATCH_CHARACTERS
        for sentence in sorted(self._turns, key=self._turns.__getitem__)[:BATCH]:
            if batch and len(sentence) > room:
                break
            self._turn = self._turns.pop(sentence)
            batch.append(sentence)
            room -= len(sentence)
        return batch

    def _decode_batch(
        self, sentences: list[str], drafts: list[str]
    ) -> list[Result | Exception]:
        """The result of each sentence, or what the model raised for it; one that fails spoils no other."""
        given: dict[str, Any] = {"drafts": drafts} if self._reads_drafts else {}
        try:
            decode = self.model.decode if self.model.corrects else self.model.translate
            return list(decode(sentences, **self._settings, **given))
        except Exception as error:
            if len(sentences) == 1:
                return [error]
            return [
                result
                for sentence, draft in zip(sentences, drafts, strict=True)
                for result in self._decode_batch([sentence], [draft])
            ]


def _written(result: Result) -> str:
    """What the model wrote for a sentence, whatever was made of it; "" where it was not decoded."""
    return " ".join(part.nbest[0].text for part in result.sentences if part.nbest)
