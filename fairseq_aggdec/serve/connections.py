"""Requests that the server refuses: to unknown host names, from pages of other origins, from silent clients."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from ipaddress import ip_address
from typing import Any

import h11
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS_TO_SEND = 10.0
"""from a connection, or the answer before, to the last byte of a request"""
MOST_SENDING = 300
"""the most connections with an unfinished request; one more closes the one that is waited for longest"""
NOSNIFF = ("X-Content-Type-Options", "nosniff")


def known_as(host: str, address: str, further: Collection[str]) -> set[str]:
    """The `hosts` of a `Door`: on an address that others can reach only those that are given, since it has more names.

    Args:
        host: as it was given.
        address: its IP address.
        further: names that were given.
    """
    if not further and not ip_address(address).is_loopback:
        return set()
    own = f"[{host}]" if ":" in host else host
    return {name.lower() for name in ("localhost", "127.0.0.1", "[::1]", own, *further)}


class Door:
    """Keeps pages of other origins out, except from LanguageTool's part, which extensions of browsers ask.

    A browser lets such a page send forms, but read no answer without the headers of CORS. A page whose own name has
    been made to lead to this machine (DNS rebinding) counts as one of this origin, and is known by its Host header.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        """
        Args:
            hosts: in lower case, IPv6 in brackets; none: any.
        """
        self._app, self._hosts = app, hosts
        self._shared = CORSMiddleware(app, allow_origins=["*"], allow_methods=["GET", "POST"], allow_headers=["*"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        app = self._app
        if scope["type"] == "http":
            scope["path"] = re.sub("/+", "/", scope["path"]).rstrip("/") or "/"
            host = re.sub(r":\d*$", "", Headers(scope=scope).get("Host", "").lower())
            if host and self._hosts and host not in self._hosts:
                app = PlainTextResponse(f"this server is not '{host}'; if it is: aggdec serve --allow-host {host}", 403)
            elif scope["path"].startswith("/v2/"):
                app = self._shared
        await app(scope, receive, send)


class Connection(H11Protocol):
    """A connection that ends when its client does not send its request in time, for which uvicorn would wait."""

    _timer: asyncio.TimerHandle | None = None  # while the client has to send

    def connection_made(self, transport: Any) -> None:
        """Begin to wait; where too many are waited for, the oldest goes."""
        super().connection_made(transport)
        self._watch()
        sending = {one._timer.when(): one for one in self.connections if isinstance(one, Connection) and one._timer}
        if len(sending) > MOST_SENDING:
            sending[min(sending)]._end("503 Service Unavailable")

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by either side."""
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(SECONDS_TO_SEND, self._end, "408 Request Timeout")

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, status: str) -> None:
        """Close it, with an answer of this status where none has begun."""
        self._stop()
        if self.cycle is None or not self.cycle.response_started:
            lines = (f"HTTP/1.1 {status}", "Connection: close", "Content-Length: 0", ": ".join(NOSNIFF), "", "")
            self.transport.write("\r\n".join(lines).encode())
        self.transport.close()
