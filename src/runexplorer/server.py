"""The explorer as a small web server: the page, and JSON for it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from types import FrameType
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from partway.errors import ConfigError, PartwayError
from partway.runs import Row
from runexplorer.explorer import Explorer, UnknownProblemError
from runexplorer.export import FILES
from runexplorer.guard import Door, Guard

MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
MAX_TYPED = 10_000  # characters of a typed program
MAX_BODY = 8 * MAX_TYPED  # bytes: JSON spells some characters with six
MOST_CONNECTIONS = 64  # a browser opens six; a request on one too many is answered with 503
MOST_TRACES = 2  # typed programs traced at once; others wait, and the list and the problems do not

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


class Json(Response):
    """JSON in ASCII: also text that UTF-8 cannot spell, such as half a surrogate pair, gets to the page."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` gives, from a thread that nothing waits for when the server is told to stop."""
    future: Future[T] = Future()

    def run() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(call())
        except BaseException as error:  # raised again where the result is awaited
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)


GETS: dict[str, Callable[[Explorer, QueryParams], Row]] = {
    "run": lambda explorer, query: explorer.facts(),
    "pulse": lambda explorer, query: explorer.pulse(),
    "list": lambda explorer, query: explorer.index.to_json(),
    "problem": lambda explorer, query: explorer.problem(query.get("key", ""), query.get("step", "")),
}


def answering(answer: Callable[[Request], Awaitable[Row]]) -> Handler:
    """An endpoint that replies with what `answer` gives, or with what is wrong with the request."""

    async def endpoint(request: Request) -> Response:
        try:
            return Json(await answer(request))
        except UnknownProblemError as error:
            return Json({"error": str(error)}, 404)
        except ValueError as error:
            return Json({"error": str(error)}, 400)
        except PartwayError as error:
            return Json({"error": str(error)}, 500)
        except asyncio.CancelledError:  # told to stop in the middle; nobody waits for the reply
            return Json({"error": "the server was stopped"}, 503)

    return endpoint


async def trace(explorer: Explorer, request: Request) -> Row:
    body = await _body(request)
    key, text = body.get("key"), body.get("text")
    if not isinstance(key, str) or not isinstance(text, str):
        raise ValueError("expected a JSON object with the texts 'key' and 'text'")
    if len(text) > MAX_TYPED:
        raise ValueError(f"a program of {len(text):,} characters; at most {MAX_TYPED:,} are traced")
    async with request.app.state.tracing:
        return await in_thread(lambda: explorer.trace(key, text))


async def _body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise ValueError("expected application/json")
    received = bytearray()
    with contextlib.suppress(ClientDisconnect):  # what came is no JSON then, and refused as such
        async for part in request.stream():
            received += part
            if len(received) > MAX_BODY:
                raise ValueError(f"more than {MAX_BODY:,} bytes")
    try:
        body = json.loads(received)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    if not isinstance(body, dict):
        raise ValueError("expected a JSON object")
    return body


def application(explorer: Explorer, door: Door) -> Guard:
    """The web application that shows a run to whoever the door lets in."""

    def getting(read: Callable[[Explorer, QueryParams], Row]) -> Handler:
        return answering(lambda request: in_thread(lambda: read(explorer, request.query_params)))

    routes = [Route(f"/api/{name}", getting(read)) for name, read in GETS.items()]
    routes.append(Route("/api/trace", answering(partial(trace, explorer)), methods=["POST"]))
    routes += [Route("/" if name == "index.html" else f"/{name}", _file(name)) for name in FILES]
    app = Starlette(routes=routes)
    app.state.tracing = asyncio.Semaphore(MOST_TRACES)
    return Guard(app, door)


def _file(name: str) -> Handler:
    async def endpoint(request: Request) -> Response:
        return FileResponse(FILES[name], media_type=MEDIA_TYPES[FILES[name].suffix])

    return endpoint


class QuickServer(uvicorn.Server):
    """A server that stops at once when it is told to."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # as of Python 3.12 an open one would be waited for
        await super().shutdown(sockets)


def serve(explorer: Explorer, host: str, port: int, on_ready: Callable[[Door], None]) -> None:
    """Serve the explorer until interrupted; `on_ready` is called once the door is open."""
    with listening(host, port) as listener:
        door = Door.at(host, listener.getsockname()[1])
        # The list is there at once; samples are read while the reader looks at it.
        threading.Thread(target=explorer.warm, daemon=True).start()
        on_ready(door)
        QuickServer(configured(application(explorer, door))).run(sockets=[listener])


def configured(app: Guard) -> uvicorn.Config:
    """How the application is served."""
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="error",  # requests that are not HTTP are not worth a line
        access_log=False,
        server_header=False,
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket that takes connections at an address; port 0 is any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except socket.gaierror:
        raise ConfigError(f"--host {host}: no such address; try 127.0.0.1") from None
    try:
        if os.name == "posix":  # on Windows it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigError(_why_not(error, host, port)) from None
    return listener


def _why_not(error: OSError, host: str, port: int) -> str:
    reasons = {
        errno.EADDRINUSE: f"port {port} is taken; choose another, or leave --port out to get a free one",
        errno.EACCES: f"port {port} may not be used by this user; choose one above 1023",
        errno.EADDRNOTAVAIL: f"--host {host}: not an address of this machine; try 127.0.0.1",
    }
    return reasons.get(error.errno or 0, f"{host}, port {port}: {error.strerror}")
