"""Decides who may ask the explorer: its own pages, and from other machines only who knows the token.

A page of another site that runs in the same browser must not get at a run: neither by naming this server
(another `Origin`) nor by a name of its own that leads here (another `Host`, known as DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


_HOST = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<plain>[^:\[\]]+))(?::[0-9]{1,5})?").fullmatch


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The numeric address that `host` is, None if it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to `host`."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


@dataclass(frozen=True)
class Door:
    """Where the server listens, and the token it asks for unless that is loopback."""

    host: str
    port: int
    token: str | None = field(default=None, repr=False)

    @classmethod
    def at(cls, host: str, port: int) -> Door:
        """The door at an address, with a fresh token if other machines can reach it."""
        return cls(host, port, None if is_loopback(host) else secrets.token_urlsafe(24))

    @property
    def address(self) -> str:
        """What to open in a browser."""
        name = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    @property
    def cookie(self) -> str:
        """The name of the cookie that carries the token; servers on other ports have other ones."""
        return f"partway-{self.port}"

    def knows(self, host: str) -> bool:
        """Whether `host`, of a request, can mean this server."""
        parts = _HOST(host)
        if parts is None:
            return False
        name = (parts["bracketed"] or parts["plain"]).lower()
        if self.token is None:
            return is_loopback(name)
        # Rebinding needs a name of the attacker's: a numeric address cannot be made to lead elsewhere.
        is_ours = name in ("localhost", self.host.lower(), socket.gethostname().lower())
        return is_ours or _address(name) is not None


def _cookies_named(name: str, header: str) -> list[str]:
    """The values of the cookies of this name; cookies of other servers on this machine may be malformed."""
    pairs = (part.partition("=") for part in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


@dataclass(frozen=True)
class Guard:
    """Lets through what may come in, and puts the headers on what goes out."""

    app: ASGIApp
    door: Door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there are no web sockets here
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self.refusal(Headers(scope=scope), scope["path"], QueryParams(scope["query_string"]))
        await (refusal or self.app)(scope, receive, send_with_headers)

    def refusal(self, headers: Headers, path: str, query: QueryParams) -> Response | None:
        """The answer to a request that goes no further, None if it may."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.door.knows(host):
            return PlainTextResponse("This server goes by another name.", 421)
        is_foreign = origin is not None and origin.lower() != f"http://{host.lower()}"
        fetched_by = headers.get("sec-fetch-site", "none")
        # A link on another site may lead to the page itself, but not to what the page asks for.
        if is_foreign or (path != "/" and fetched_by not in ("same-origin", "none")):
            return PlainTextResponse("Pages of other sites may not ask here.", 403)
        if self.door.token is None or self._has_token(headers.get("cookie", "")):
            return None
        # Compared in constant time: how long a wrong token takes tells nothing about the right one.
        if path == "/" and secrets.compare_digest(query.get("token", "").encode(), self.door.token.encode()):
            return self._welcome()
        return PlainTextResponse("Open the address that partway explore printed: it holds the token.", 401)

    def _has_token(self, cookies: str) -> bool:
        assert self.door.token is not None, "without a token nobody is asked for one"
        return any(
            secrets.compare_digest(value.encode(), self.door.token.encode())
            for value in _cookies_named(self.door.cookie, cookies)
        )

    def _welcome(self) -> Response:
        """To the page, without the token in its address."""
        # Addresses are remembered and passed on; the cookie is not, and no script can read it.
        response = RedirectResponse("/", 303)
        response.set_cookie(self.door.cookie, self.door.token or "", httponly=True, samesite="lax")
        return response
