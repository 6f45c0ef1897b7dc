"""The part of LanguageTool's HTTP API, version 2, that writing programs use: /v2/check and /v2/languages."""

from bisect import bisect_right
from collections import deque
from dataclasses import replace
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import fairseq_aggdec
from fairseq_aggdec.serve.batching import Batcher
from fairseq_aggdec.serve.requests import (
    FORM,
    NAMES,
    in_thread,
    read_fields,
    read_form,
    read_json,
    while_wanted,
)
from fairseq_aggdec.text.edits import to_utf16, utf16_units, widened
from fairseq_aggdec.text.results import Edit, Result

RULE = "AGGDEC_CORRECTION"
"""the id of the one rule of all matches"""
CATEGORY = "GRAMMAR"
"""the id of its category"""
_VARIANTS = {
    "en": ("AU", "CA", "GB", "NZ", "US", "ZA"),
    "de": ("AT", "CH", "DE"),
    "pt": ("BR", "PT"),
}
_CONTEXT = 40  # characters around a match


def languagetool_routes(corrector: Batcher) -> list[Route]:
    """The endpoints of a corrector."""
    code = corrector.language
    name = NAMES.get(code, code)

    async def check(request: Request) -> Response:
        if request.method in ("HEAD", "OPTIONS"):
            return Response(headers={"Allow": "GET, HEAD, POST, OPTIONS"})
        with corrector.taking(request) as has_come:
            # the text, in one of the forms in which clients send it
            fields = read_form(request.url.query)
            if request.method == "POST":
                kinds = FORM, "text/plain", ""  # as clients call a form that they wrote
                fields |= await read_fields(request, has_come, *kinds)
            language = fields.get("language")
            if not language:
                raise HTTPException(400, "Error: Missing 'language' parameter")
            if (
                language != "auto"
                and language.lower().replace("_", "-").split("-")[0] != code
            ):
                raise HTTPException(
                    400,
                    f"Error: '{language}' is not a language code known to this server, which has {code}",
                )
            # its correction
            parts = await in_thread(len(fields.get("data", "")), _parts, fields)
            text, plain = ("".join(part[column] for part in parts) for column in (0, 1))
            checked = plain if _wants_corrections(fields) else ""
            (result,) = await while_wanted(request, corrector.decode_texts([checked]))
        answer = {
            "software": {
                "name": "fairseq-aggdec", "version": fairseq_aggdec.__version__, "buildDate": "", "apiVersion": 1,
                "premium": False, "status": "",
            },
            "warnings": {"incompleteResults": False},
            "language": {
                "name": name, "code": code if language == "auto" else language,
                # nothing is detected
                "detectedLanguage": {"name": name, "code": code, "confidence": 0.0},
            },
        }  # fmt: skip
        return await in_thread(
            len(text),
            lambda: JSONResponse(answer | {"matches": _matches(text, parts, result)}),
        )

    async def languages(request: Request) -> Response:
        variants = [
            (f"{name} ({country})", f"{code}-{country}")
            for country in _VARIANTS.get(code, ())
        ]
        return JSONResponse(
            [
                {"name": n, "code": code, "longCode": long}
                for n, long in [(name, code), *variants]
            ]
        )

    return [
        Route("/v2/check", check, methods=["GET", "POST", "OPTIONS"]),
        Route("/v2/languages", languages, methods=["GET"]),
    ]


def _wants_corrections(fields: dict[str, str]) -> bool:
    """Whether the client wants the one rule: with `enabledOnly` it must be enabled, otherwise not be disabled."""

    def named(switch: str) -> bool:
        rules, categories = (
            fields.get(f"{switch}{kind}", "") for kind in ("Rules", "Categories")
        )
        return RULE in map(str.strip, rules.split(",")) or CATEGORY in map(
            str.strip, categories.split(",")
        )

    return (
        named("enabled")
        if fields.get("enabledOnly") == "true"
        else not named("disabled")
    )


def _parts(fields: dict[str, str]) -> list[tuple[str, str]]:
    """The parts of the text as (sent, checked); for markup, the checked text is what it is to be interpreted as.

    Raises:
        HTTPException: neither `text` nor `data`, or both, or `data` is not an annotation (400).
    """
    if ("text" in fields) == ("data" in fields):
        raise HTTPException(
            400, "Error: give either the 'text' or the 'data' parameter"
        )
    if "text" in fields:
        return [(fields["text"], fields["text"])]
    data = read_json(fields["data"])
    if isinstance(data.get("text"), str):
        return [(data["text"], data["text"])]
    annotation = data.get("annotation")
    parts = []
    for part in annotation if isinstance(annotation, list) else [None]:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append((part["text"], part["text"]))
        elif isinstance(part, dict) and isinstance(part.get("markup"), str):
            parts.append((part["markup"], str(part.get("interpretAs") or "")))
        else:
            raise HTTPException(
                400,
                "Error: 'data' needs 'text', or 'annotation', a list of 'text' or 'markup'",
            )
    return parts


def _matches(
    text: str, parts: list[tuple[str, str]], result: Result
) -> list[dict[str, Any]]:
    starts = [sentence.start for sentence in result.sentences]
    found = [
        (edit, result.sentences[max(0, bisect_right(starts, place) - 1)].source)
        for edit, place in _placed(widened(result.source, result.edits), parts)
    ]
    counted = to_utf16(text, [edit for edit, _ in found])
    return [
        _match(text, edit, units, sentence)
        for (edit, sentence), units in zip(found, counted, strict=True)
    ]


def _placed(edits: list[Edit], parts: list[tuple[str, str]]) -> list[tuple[Edit, int]]:
    """Pairs of an edit, with its offset in the sent text, and its offset in the checked text.

    Edits that would change markup are dropped.
    """
    placed = []
    sent = checked = 0  # where the part begins, in both texts
    waiting = deque(edits)
    for text, plain in parts:
        end = checked + len(plain)
        while waiting and waiting[0].offset < end:
            edit = waiting.popleft()
            if text == plain and edit.end <= end:
                moved = replace(edit, offset=edit.offset - checked + sent)
                placed.append((moved, edit.offset))
        sent += len(text)
        checked = end
    return placed


def _match(text: str, edit: Edit, units: Edit, sentence: str) -> dict[str, Any]:
    """An entry of `matches`; `units` is the edit in UTF-16 code units."""
    old = text[edit.offset : edit.end]
    before = text[max(0, edit.offset - _CONTEXT) : edit.offset]
    after = text[edit.end : edit.end + _CONTEXT]
    advice = (
        f"replace “{old}” by “{edit.replacement}”"
        if edit.replacement
        else f"leave out “{old}”"
    )
    return {
        "message": f"The corrector would {advice}.",
        "shortMessage": "Correction",
        "offset": units.offset,
        "length": units.length,
        "replacements": [{"value": edit.replacement}],
        "context": {
            "text": "".join(
                " " if part in "\r\n\t" else part for part in before + old + after
            ),
            "offset": utf16_units(before),
            "length": units.length,
        },
        "sentence": sentence,
        "type": {"typeName": "Other"},
        "ignoreForIncompleteSentence": False,
        "contextForSureMatch": -1,
        "rule": {
            "id": RULE,
            "description": "What the model writes in its correction of the sentence",
            "issueType": "grammar",
            "category": {"id": CATEGORY, "name": "Grammar"},
        },
    }
