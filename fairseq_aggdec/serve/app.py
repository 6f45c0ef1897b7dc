"""The web application of `aggdec serve`: its endpoints, its limits, and the loop that runs it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairseq_aggdec.errors import AggdecError, reason_of
from fairseq_aggdec.process import gpu_is_lost
from fairseq_aggdec.serve.batching import Batcher
from fairseq_aggdec.serve.connections import OriginGuard, known_as
from fairseq_aggdec.serve.languagetool import languagetool_routes
from fairseq_aggdec.serve.libretranslate import libretranslate_routes

if TYPE_CHECKING:
    from fairseq_aggdec.model import Model

logger = logging.getLogger(__name__)


def make_app(
    corrector: Model,
    translator: Model | None = None,
    language: str | None = None,
    seconds: float = 30,
    hosts: Collection[str] = (),
    translator_mode: str | None = None,
    **settings: Any,
) -> Starlette:
    """The application; one thread decodes for all of its requests.

    Args:
        corrector: a model.
        translator: another, or None.
        language: ISO code of what the corrector corrects; None: its `source_lang`.
        seconds: the most that a request takes, from its first byte to its answer.
        hosts: by which it may be asked, as in `OriginGuard`.
        translator_mode: as in `Model.translate`.
        settings: other arguments of the corrector's `decode`.
    """
    worker = ThreadPoolExecutor(1, "decoding")
    correcting = Batcher(corrector, worker, language, **settings)
    translating = None
    if translator is not None:
        translating = Batcher(translator, worker, mode=translator_mode)
    page = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
    )

    async def show(request: Request) -> Response:
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    async def healthy(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        worker.shutdown()

    routes = [
        Route("/", show, methods=["GET"]),
        *(
            Route(path, healthy, methods=["GET"])
            for path in ("/healthz", "/v2/healthcheck")
        ),
        *languagetool_routes(correcting),
        *libretranslate_routes(translating),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(OriginGuard, hosts=hosts),
            Middleware(Limits, seconds=seconds),
        ],
        exception_handlers={HTTPException: _refuse},
        lifespan=lifespan,
    )


async def _refuse(request: Request, error: Exception) -> Response:
    """An error in the form that the clients of its path read."""
    assert isinstance(error, HTTPException)
    if request.scope["path"].startswith("/v2/"):
        return PlainTextResponse(error.detail, error.status_code, error.headers)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


class Limits:
    """Bounds the time of requests, and says what went wrong without a word of their texts."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_answered = False

        async def sending(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        refusal: HTTPException | None = None
        try:
            await asyncio.wait_for(self._app(scope, receive, sending), self._seconds)
        except TimeoutError:
            refusal = HTTPException(
                503,
                f"not done within {self._seconds:g} seconds: try again later",
                {"Retry-After": "2"},
            )
        except ClientDisconnect:
            pass
        except Exception as error:  # its message may hold the text
            frames = "".join(traceback.format_tb(error.__traceback__))
            logger.error("%s at %s\n%s", type(error).__name__, scope["path"], frames)
            refusal = HTTPException(500, "internal error")
            if gpu_is_lost():
                scope["app"].state.server.should_exit = True
        if refusal is not None and not is_answered:
            await (await _refuse(Request(scope), refusal))(scope, receive, sending)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one.

    Raises:
        AggdecError: the address cannot be had.
    """
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except (OSError, OverflowError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise AggdecError(
            f"--host {host} --port {port}: {reason}; --port 0 takes a free one"
        ) from error


def serve(
    listening: socket.socket,
    host: str,
    further: Collection[str],
    corrector: Model,
    translator: Model | None,
    language: str | None,
    settings: dict[str, Any],
    translator_mode: str | None = None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C.

    Args:
        listening: as by `listen`.
        host: its address, as it was given.
        further: other names by which it is asked.
        corrector, translator, language, settings, translator_mode: as in `make_app`.

    Raises:
        AggdecError: an option of the models cannot be used, or the GPU has failed.
    """
    # in seconds: long texts are split beside the thread that decodes
    sys.setswitchinterval(0.001)
    # a wrong option is refused now; the first request is fast
    corrector.decode("This is ready.", **settings)
    if translator is not None:
        translator.translate("This is ready.", translator_mode)
    address, port = listening.getsockname()[:2]
    hosts = known_as(host, address, further)
    app = make_app(
        corrector,
        translator,
        language,
        hosts=hosts,
        translator_mode=translator_mode,
        **settings,
    )
    shown = f"[{host}]" if ":" in host else host
    print(
        f"http://{shown}:{port} (no authentication: not for the open net)", flush=True
    )
    if host not in ("127.0.0.1", "::1", "localhost"):
        print(
            f"warning: --host {host} lets in whoever can reach this machine",
            file=sys.stderr,
        )
    # uvicorn raises it again when all is answered
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    make_server(app).run(sockets=[listening])
    if gpu_is_lost():
        raise AggdecError(
            "the GPU has failed and takes no more work from this process: start it again"
        )


def make_server(app: Starlette) -> uvicorn.Server:
    """The loop that runs an application.

    `run(sockets=[...])` returns when all is answered: after SIGTERM or Ctrl-C, or where the GPU is lost.
    """
    app.state.server = uvicorn.Server(
        uvicorn.Config(
            app, loop="asyncio", http="h11", ws="none", log_level="warning", access_log=False, server_header=False,
            limit_concurrency=700, backlog=128, headers=[("X-Content-Type-Options", "nosniff")],
        )
    )  # fmt: skip
    return app.state.server
