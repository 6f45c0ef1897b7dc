"""What requests of both protocols have in common: reading a body, and languages."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

MOST_BYTES = 256 * 1024
"""of a request's body"""
NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "et": "Estonian", "fi": "Finnish", "fr": "French", "hu": "Hungarian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip
"""{ISO code: a language}; another code is its own name"""

_UNENCODED = re.compile(
    r"text=(?P<text>.*[^!-~].*)&language=(?P<language>[\w-]+)(?:&username=.*&apiKey=.*)?", re.DOTALL
)
"""the form of LibreOffice 7.4, which encodes nothing; an encoded one has neither blanks nor letters beyond ASCII"""


async def read_body(request: Request) -> bytes:
    """The body of a request.

    Raises:
        HTTPException: it is too long (413). The rest is read first, as clients listen only when they have sent all.
    """
    body, size = b"", 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MOST_BYTES:
            body += chunk
    if size > MOST_BYTES:
        raise HTTPException(413, f"the text is too long: {size} bytes, and at most {MOST_BYTES} are taken")
    return body


def read_form(query: str | bytes) -> dict[str, str]:
    """The fields of a URL-encoded form or query; of a repeated one, the last."""
    text = query.decode(errors="replace") if isinstance(query, bytes) else query
    raw = _UNENCODED.fullmatch(text)
    return raw.groupdict() if raw else dict(parse_qsl(text, keep_blank_values=True))


def read_json(text: str | bytes) -> dict[str, Any]:
    """A JSON object; halves of surrogate pairs in its strings are replaced.

    Raises:
        HTTPException: it is no JSON object (400).
    """
    try:
        written = json.dumps(json.loads(text), ensure_ascii=False)
        found = json.loads(written.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise HTTPException(400, "not a JSON object")
    return found
