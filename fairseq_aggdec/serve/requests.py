"""Parts that both protocols share: reading a body away from the event loop, and languages."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

MOST_BYTES = 256 * 1024
"""of a request's body"""
NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "et": "Estonian", "fi": "Finnish", "fr": "French", "hu": "Hungarian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip
"""{ISO code: a language}; another code stands for its name"""

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
SHORT = 8 * 1024
"""characters of a text that does not wait for long ones to be read"""

_SHORT, _LONG = (ThreadPoolExecutor(1, f"{name} texts") for name in ("short", "long"))
_Made = TypeVar("_Made")


async def in_thread(
    size: int, function: Callable[..., _Made], *arguments: Any
) -> _Made:
    """The result of a function for a text of `size` characters, while the event loop serves other requests."""
    return await asyncio.get_running_loop().run_in_executor(
        _SHORT if size <= SHORT else _LONG, function, *arguments
    )


async def while_wanted(request: Request, work: Coroutine[Any, Any, _Made]) -> _Made:
    """The result of `work` for a request whose body is read; it ends early where the client has gone.

    Raises:
        ClientDisconnect: it has.
    """
    working = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([working], timeout=0.5))[0]:
            if await request.is_disconnected():
                raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()


async def read_fields(
    request: Request, has_come: Callable[[int], None], *kinds: str
) -> dict[str, Any]:
    """The fields of a body, which is read as JSON only if the request calls it so.

    Args:
        request: whose body is read.
        has_come: told how many bytes of the body have come, up to `MOST_BYTES`; it may refuse the rest.
        kinds: the content types that are taken; "" is a request without one.

    Raises:
        HTTPException: another type (415), too long (413), or no JSON object (400).
    """
    body = bytearray()
    size = 0
    # to its end: clients listen only when they have sent all
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MOST_BYTES:
            has_come(size)
            body += chunk
    if size > MOST_BYTES:
        raise HTTPException(
            413,
            f"the text is too long: {size} bytes, and at most {MOST_BYTES} are taken",
        )
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in kinds:
        raise HTTPException(
            415,
            f"Content-Type '{kind}' is not read here: send {' or '.join(filter(None, kinds))}",
        )
    return await in_thread(
        len(body), read_json if kind == JSON else read_form, bytes(body)
    )


def read_form(query: str | bytes) -> dict[str, str]:
    """The fields of a URL-encoded form or query; of a repeated one, the last.

    LibreOffice 7.4 encodes nothing: its text stands as it is between `text=` and the last `&language=`. An encoded form
    has neither blanks nor letters beyond ASCII.
    """
    form = query.decode(errors="replace") if isinstance(query, bytes) else query
    text, _, others = form.rpartition("&language=")
    language, login, others = others.partition("&username=")
    is_encoded = text.isascii() and text.isprintable() and " " not in text
    is_language = language.replace("-", "").replace("_", "").isalnum()
    if (
        text.startswith("text=")
        and not is_encoded
        and is_language
        and (not login or "&apiKey=" in others)
    ):
        return {"text": text.removeprefix("text="), "language": language}
    return dict(parse_qsl(form, keep_blank_values=True))


def read_json(text: str | bytes) -> dict[str, Any]:
    """A JSON object; halves of surrogate pairs in its strings are replaced.

    Raises:
        HTTPException: it is no JSON object (400).
    """
    try:
        written = json.dumps(json.loads(text), ensure_ascii=False)
        found = json.loads(
            written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise HTTPException(400, "not a JSON object")
    return found
