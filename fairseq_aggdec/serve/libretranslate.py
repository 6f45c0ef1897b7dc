"""The part of LibreTranslate's HTTP API that clients need for plain text: /translate and /languages."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fairseq_aggdec.serve.batching import Batcher
from fairseq_aggdec.serve.requests import FORM, JSON, NAMES, read_fields, while_wanted
from fairseq_aggdec.serve.sessions import growing


def libretranslate_routes(translator: Batcher | None) -> list[Route]:
    """The endpoints of a translator; without one, they say how to have one."""
    source = translator.language if translator else ""
    target = translator.model.target_lang or "" if translator else ""

    async def translate(request: Request) -> Response:
        if translator is None:
            raise HTTPException(
                404,
                "no translator here: start with --translator CKPT, or with --demo to try one",
            )
        with translator.taking(request) as has_come:
            # what is asked for, and whether it can be had
            fields = await read_fields(request, has_come, JSON, FORM)
            for name in ("q", "source", "target"):
                if name not in fields:
                    raise HTTPException(
                        400, f"Invalid request: missing {name} parameter"
                    )
            q = fields["q"]
            texts = q if isinstance(q, list) else [q]
            if not all(isinstance(text, str) for text in texts):
                raise HTTPException(
                    400, "Invalid request: q must be a text or a list of texts"
                )
            if fields["source"] not in ("auto", source):
                raise HTTPException(
                    400, f"{fields['source']} is not supported: the source is {source}"
                )
            if fields["target"] != target:
                raise HTTPException(
                    400, f"{fields['target']} is not supported: the target is {target}"
                )
            if fields.get("format", "text") != "text":
                raise HTTPException(
                    400, f"format {fields['format']} is not supported: send text"
                )
            decoding = translator.decode_texts(texts, growing(request, fields, q))
            results = await while_wanted(request, decoding)
        # the answer has the form of the question
        translations = [result.text for result in results]
        answer: dict[str, Any] = {
            "translatedText": translations if isinstance(q, list) else translations[0]
        }
        notes = [note for result in results for note in result.notes]
        if notes:  # beyond LibreTranslate's fields
            answer["notes"] = notes
        if fields["source"] == "auto":
            detected = {"confidence": 0.0, "language": source}  # nothing is detected
            answer["detectedLanguage"] = (
                [detected] * len(texts) if isinstance(q, list) else detected
            )
        return JSONResponse(answer)

    async def languages(request: Request) -> Response:
        codes: tuple[tuple[str, list[str]], ...] = (
            ((source, [target]), (target, [])) if translator else ()
        )
        return JSONResponse(
            [
                {"code": code, "name": NAMES.get(code, code), "targets": to}
                for code, to in codes
            ]
        )

    return [
        Route("/translate", translate, methods=["POST"]),
        Route("/languages", languages, methods=["GET"]),
    ]
