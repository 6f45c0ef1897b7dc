"""Sentences of many requests, decoded together: a queue with a bound, and a cache of sentences."""

from __future__ import annotations

import asyncio
import heapq
import re
from collections import OrderedDict
from concurrent.futures import Executor
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from fairseq_aggdec.text.edits import result_of
from fairseq_aggdec.text.results import Edit, Result, Sentence
from fairseq_aggdec.text.sentences import split_text

if TYPE_CHECKING:
    from fairseq_aggdec.text.model import Model

BATCH = 32
"""sentences that are decoded at once"""
MOST_WAITING = MOST_CACHED = 4000
"""sentences in the queue, beyond which more are refused, and in the cache"""
LONGEST_CACHED = 1000
"""characters of a sentence in the cache"""


def busy() -> HTTPException:
    """The refusal of a request that may be sent again."""
    return HTTPException(429, "too many texts are waiting: try again later", {"Retry-After": "2"})


class Batcher:
    """One model with its queue and its cache. All methods are for one event loop; only `worker` decodes.

    Requests take turns in the queue, sentence by sentence: a short text does not wait for the end of a long one.
    """

    def __init__(self, model: Model, worker: Executor, language: str | None = None, **settings: Any) -> None:
        """
        Args:
            model: decodes the sentences, each as a text of its own.
            worker: one thread. Several batchers may share it; their batches then take turns.
            language: the ISO code of the texts' language; None: the model's `source_lang`.
            settings: further arguments of `model.decode`.
        """
        self.model = model
        self.worker = worker
        self.language: str = language or model.source_lang
        self.sentences = 0
        """sentences asked for so far"""
        self.cache_hits = 0
        """those of them that were in the cache"""
        self._settings = settings
        self._queue: list[tuple[int, int, str]] = []  # a heap of (turn, number, sentence)
        self._turn = 0  # of the sentences that are decoded now
        self._numbers = count()
        self._asked: dict[str, asyncio.Future[Result]] = {}
        self._cache: OrderedDict[str, Result] = OrderedDict()
        self._work: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """The number of sentences in the queue."""
        return len(self._queue)

    async def decode_text(self, text: str) -> Result:
        """The result of a text, as `Model.decode` gives it.

        Raises:
            HTTPException: too many sentences wait (429), or would be too many even if none waited (413).
        """
        spans = split_text(text, self.language, markers=self.model.corrects)
        # as one line, a sentence is cut no further when it is decoded alone; places in it stay the same
        results = await self._decode([re.sub(r"[^\S\t]", " ", text[start:end]) for start, end in spans])
        sentences: list[Sentence] = []
        edits: list[Edit] = []
        for (start, _), result in zip(spans, results, strict=True):
            for own in result.sentences:
                first, last = own.start + start, own.end + start
                sentences.append(replace(own, source=text[first:last], start=first, end=last))
            edits += [replace(edit, offset=edit.offset + start) for edit in result.edits]
        return result_of(text, sentences, edits if self.model.corrects else None)

    async def _decode(self, sentences: list[str]) -> list[Result]:
        known = {sentence: self._cache[sentence] for sentence in sentences if sentence in self._cache}
        for sentence in known:
            self._cache.move_to_end(sentence)
        unknown = [sentence for sentence in dict.fromkeys(sentences) if sentence not in known]
        new = [sentence for sentence in unknown if sentence not in self._asked]
        if len(new) > MOST_WAITING:
            raise HTTPException(413, f"the text is too long: at most {MOST_WAITING} sentences are taken")
        if len(self._queue) + len(new) > MOST_WAITING:
            raise busy()
        self.sentences += len(sentences)
        self.cache_hits += sum(sentence in known for sentence in sentences)
        for place, sentence in enumerate(new):
            self._asked[sentence] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._queue, (self._turn + place, next(self._numbers), sentence))
        if self._queue and (self._work is None or self._work.done()):
            self._work = asyncio.create_task(self._decode_queue())
        asked = {sentence: self._asked[sentence] for sentence in unknown}
        if asked:
            # not gather: a request that gives up must not cancel what others may wait for
            await asyncio.wait(asked.values())
        return [known[sentence] if sentence in known else asked[sentence].result() for sentence in sentences]

    async def _decode_queue(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue:
            batch = [heapq.heappop(self._queue) for _ in range(min(BATCH, len(self._queue)))]
            self._turn = batch[-1][0]
            sentences = [sentence for _, _, sentence in batch]
            results = await loop.run_in_executor(self.worker, self._decode_batch, sentences)
            for sentence, result in zip(sentences, results, strict=True):
                future = self._asked.pop(sentence)
                if isinstance(result, Exception):
                    future.set_exception(result)
                    future.exception()  # else asyncio logs it, with the sentence, when nobody waits any more
                    continue
                future.set_result(result)
                if len(sentence) <= LONGEST_CACHED:
                    self._cache[sentence] = result
            while len(self._cache) > MOST_CACHED:
                self._cache.popitem(last=False)

    def _decode_batch(self, sentences: list[str]) -> list[Result | Exception]:
        """The result of each sentence, or what the model raised for it; one that fails spoils no other."""
        try:
            return list(self.model.decode(sentences, **self._settings))
        except Exception as error:
            if len(sentences) == 1:
                return [error]
            return [result for sentence in sentences for result in self._decode_batch([sentence])]
