"""Corrupts a stream of lines in constant memory, with one process or several, with the same result."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from fairseq_aggdec.data.corruption import Corruptor
from fairseq_aggdec.data.ptb import tokenise
from fairseq_aggdec.files import decode_text

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass
class CorruptedChunk:
    """Pairs of consecutive lines, ready to be written."""

    source: bytes
    """erroneous sentences, one a line"""
    target: bytes
    """the same number of clean sentences"""
    pairs: int = 0
    """number of pairs"""
    unchanged: int = 0
    """pairs whose source equals its target"""
    empty: int = 0
    """input lines left out because they hold no text"""
    edits: Counter[str] = field(default_factory=Counter)
    """errors made, by type"""


def decode_line(line: bytes, name: str, number: int) -> str:
    """The text of one line with its spaces normalised.

    Raises:
        AggdecError: the bytes are not UTF-8; the message names file and line.
    """
    return " ".join(decode_text(line, name, number).split())


def chunks(lines: Iterable[bytes], size: int) -> Iterator[tuple[int, list[bytes]]]:
    """Splits lines into (number of the first line, counted from 1; lines) of at most `size` lines."""
    stream = iter(lines)
    first = 1
    while chunk := list(islice(stream, size)):
        yield first, chunk
        first += len(chunk)


def corrupt_chunk(
    corruptor: Corruptor, seed: int, name: str, first: int, lines: list[bytes], tokens: bool = False
) -> CorruptedChunk:
    """Corrupts consecutive lines; each depends on the seed and its line number only. See `corrupt_stream`."""
    source: list[str] = []
    target: list[str] = []
    result = CorruptedChunk(b"", b"")
    for number, line in enumerate(lines, first):
        text = decode_line(line, name, number)
        if not text:
            result.empty += 1
            continue
        wrong, made = corruptor.corrupt_line(text, seed, number)
        source.append(tokenise(wrong) if tokens else wrong)
        target.append(tokenise(text) if tokens else text)
        result.unchanged += not made
        result.edits.update(made)
    result.pairs = len(source)
    if source:
        result.source = ("\n".join(source) + "\n").encode()
        result.target = ("\n".join(target) + "\n").encode()
    return result


def bounded_map(submit: Callable[[_Item], Future[_Result]], items: Iterable[_Item], window: int) -> Iterator[_Result]:
    """Results in the order of the items, with at most `window` items read ahead of the result being waited for."""
    pending: deque[Future[_Result]] = deque()
    for item in items:
        pending.append(submit(item))
        if len(pending) >= window:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


_worker_state: tuple[Corruptor, int, str, bool] | None = None


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _start_worker(*state: Any) -> None:
    global _worker_state
    # The parent alone answers an interrupt; a worker whose parent was killed must not wait for work for ever.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _worker_state = state


def _work(first: int, lines: list[bytes]) -> CorruptedChunk:
    assert _worker_state is not None
    corruptor, seed, name, tokens = _worker_state
    return corrupt_chunk(corruptor, seed, name, first, lines, tokens)


def corrupt_stream(
    corruptor: Corruptor,
    lines: Iterable[bytes],
    seed: int,
    name: str = "input",
    workers: int = 1,
    chunk_size: int = 1000,
    tokens: bool = False,
) -> Iterator[CorruptedChunk]:
    """Corrupts lines in order; the result does not depend on `workers`.

    At most 4 x `workers` chunks are held at a time, whatever the length of the stream.

    Args:
        lines: UTF-8 lines, with or without their newline.
        name: what error messages call the input.
        workers: number of processes; 1 works in this one.
        tokens: write both sides in Penn Treebank tokens.
    """
    if workers == 1:
        for first, chunk in chunks(lines, chunk_size):
            yield corrupt_chunk(corruptor, seed, name, first, chunk, tokens)
        return
    # Forked workers share the lexicon and need no import of their own.
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(workers, context, _start_worker, (corruptor, seed, name, tokens)) as pool:
        try:
            yield from bounded_map(lambda chunk: pool.submit(_work, *chunk), chunks(lines, chunk_size), 4 * workers)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
