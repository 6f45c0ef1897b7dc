"""Requests that the server refuses: to unknown host names, and from pages of other origins."""

import re
from collections.abc import Collection
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send


def known_as(host: str, address: str, further: Collection[str]) -> set[str]:
    """The `hosts` of an `OriginGuard`: where others can reach the address, only those given, since it has more names.

    Args:
        host: as it was given.
        address: its IP address.
        further: names that were given.
    """
    if not further and not ip_address(address).is_loopback:
        return set()
    given = f"[{host}]" if ":" in host else host
    return {
        name.lower() for name in ("localhost", "127.0.0.1", "[::1]", given, *further)
    }


class OriginGuard:
    """Keeps pages of other origins out, except from the LanguageTool API, which browser extensions call.

    A browser lets such a page send forms, but read no answer without the headers of CORS. A page whose name has
    been made to lead to this machine (DNS rebinding) counts as one of this origin, and is known by its Host header.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        """
        Args:
            hosts: in lower case, IPv6 in brackets; none: any.
        """
        self._app = app
        self._hosts = hosts
        self._shared = CORSMiddleware(
            app, allow_origins=["*"], allow_methods=["GET", "POST"], allow_headers=["*"]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        app = self._app
        if scope["type"] == "http":
            scope["path"] = re.sub("/+", "/", scope["path"]).rstrip("/") or "/"
            host = re.sub(r":\d*$", "", Headers(scope=scope).get("Host", "").lower())
            if host and self._hosts and host not in self._hosts:
                app = PlainTextResponse(
                    f"this server is not '{host}'; if it is: aggdec serve --allow-host {host}",
                    403,
                )
            elif scope["path"].startswith("/v2/"):
                app = self._shared
        await app(scope, receive, send)
