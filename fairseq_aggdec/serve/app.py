"""The web application of `aggdec serve`: its endpoints, its limits, its measures, and the loop that runs it."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
import traceback
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import groupby
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
from fairseq_aggdec.serve.batching import Batcher
from fairseq_aggdec.serve.connections import NOSNIFF, Connection, Door
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
    **settings: Any,
) -> Starlette:
    """The application; one thread decodes for all of its requests.

    Args:
        corrector: a model.
        translator: another, or None.
        language: ISO code of what the corrector corrects; None: its `source_lang`.
        seconds: the most that a request takes, from its first byte to its answer.
        hosts: by which it may be asked, as in `Door`.
        settings: other arguments of the corrector's `decode`.
    """
    worker = ThreadPoolExecutor(1, "decoding")
    correcting = Batcher(corrector, worker, language, **settings)
    batchers = {"corrector": correcting} | ({"translator": Batcher(translator, worker)} if translator else {})
    counts: defaultdict[str, float] = defaultdict(float)
    page = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
    )

    async def show(request: Request) -> Response:
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    async def healthy(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def measured(request: Request) -> Response:
        return PlainTextResponse(_metrics(counts, batchers), media_type="text/plain; version=0.0.4")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        worker.shutdown()

    routes = [
        Route("/", show, methods=["GET"]),
        *(Route(path, healthy, methods=["GET"]) for path in ("/healthz", "/v2/healthcheck")),
        Route("/metrics", measured, methods=["GET"]),
        *languagetool_routes(correcting),
        *libretranslate_routes(batchers.get("translator")),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Door, hosts=hosts),
            Middleware(Limits, counts=counts, seconds=seconds, paths={route.path for route in routes}),
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


def _metrics(counts: Mapping[str, float], batchers: dict[str, Batcher]) -> str:
    """The metrics of /metrics, in the text format of Prometheus, with those of the batchers by their models' names."""
    values = dict(counts)
    for name, batcher in batchers.items():
        values[f'sentences_total{{model="{name}"}}'] = batcher.sentences
        values[f'cache_hits_total{{model="{name}"}}'] = batcher.cache_hits
        values[f'queue_length{{model="{name}"}}'] = batcher.waiting
    lines = []
    for metric, names in groupby(sorted(values), key=lambda name: name.partition("{")[0]):
        lines.append(f"# TYPE aggdec_{metric} {'counter' if metric.endswith('_total') else 'gauge'}")
        lines += [f"aggdec_{name} {values[name]}" for name in names]
    return "\n".join(lines) + "\n"


class Limits:
    """Bounds the time of requests, counts them, and says what went wrong without a word of their texts."""

    def __init__(self, app: ASGIApp, counts: defaultdict[str, float], seconds: float, paths: set[str]) -> None:
        self._app, self._counts, self._seconds, self._paths = app, counts, seconds, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        refusal: HTTPException | None = None
        try:
            await asyncio.wait_for(self._app(scope, receive, sending), self._seconds)
        except TimeoutError:
            refusal = HTTPException(
                503, f"not done within {self._seconds:g} seconds: try again later", {"Retry-After": "2"}
            )
        except ClientDisconnect:
            status = 499  # as nginx counts it
        except Exception as error:  # its message may hold the text
            frames = "".join(traceback.format_tb(error.__traceback__))
            logger.error("%s at %s\n%s", type(error).__name__, scope["path"], frames)
            refusal = HTTPException(500, "internal error")
        if refusal is not None and not status:
            await (await _refuse(Request(scope), refusal))(scope, receive, sending)
        path = scope["path"] if scope["path"] in self._paths else "other"
        self._counts[f'requests_total{{path="{path}",status="{status}"}}'] += 1
        self._counts[f'request_seconds_total{{path="{path}"}}'] += time.perf_counter() - start


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one.

    Raises:
        AggdecError: the address cannot be had.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise AggdecError(f"--host {host} --port {port}: {reason}; --port 0 takes a free one") from error


def make_server(app: Starlette) -> uvicorn.Server:
    """The loop that runs an application; `run(sockets=[...])` returns after SIGTERM or Ctrl-C, when all is answered."""
    return uvicorn.Server(
        uvicorn.Config(
            app, loop="asyncio", http=Connection, ws="none", log_level="warning", access_log=False, server_header=False,
            limit_concurrency=700, backlog=128, headers=[NOSNIFF],
        )
    )  # fmt: skip
