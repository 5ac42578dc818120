"""A completions server on loopback that answers as a test tells it to, also badly."""

import itertools
import json
import random
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completions(*texts, finish_reason="stop"):
    """The body of a good answer."""
    choices = [{"text": text, "index": i, "finish_reason": finish_reason} for i, text in enumerate(texts)]
    return {"object": "text_completion", "choices": choices}


def too_much():
    """A good answer, but for the nine megabytes of blanks behind it."""
    return json.dumps(completions("answer = 1\n")).encode() + b" " * (9 << 20)


class RoutedServer(ThreadingHTTPServer):
    """Answers with `routes["METHOD /path"](payload)`: a status, a body, perhaps headers. Remembers calls.

    A body that is a function writes to the connection what it likes.
    """

    daemon_threads = True

    def __init__(self, routes, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.routes = routes
        self.lock = threading.Lock()
        self.calls = []  # in their order
        self.authorizations = []
        self.at_once = self.most_at_once = 0
        self.is_down = False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def asked(self, path="/v1/completions"):
        """The payloads sent to a path."""
        return [payload for method, where, payload in self.calls if where == path]

    def handle_error(self, request, client_address):
        """A client that hangs up is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.respond("GET", None)

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        self.respond("POST", json.loads(self.rfile.read(length)) if length else None)

    def respond(self, method, payload):
        server = self.server
        if server.is_down:  # connections outlive the server's own socket
            self.close_connection = True
            return
        with server.lock:
            server.calls.append((method, self.path, payload))
            server.authorizations.append(self.headers.get("Authorization"))
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            self.answer(*self.found(f"{method} {self.path.partition('?')[0]}")(payload))
        finally:
            with server.lock:
                server.at_once -= 1

    def found(self, route):
        routes = self.server.routes
        if route == "GET /openapi.json" and route not in routes:
            return lambda payload: (200, {"paths": {name.partition(" ")[2]: {} for name in routes}})
        return routes.get(route, lambda payload: (404, {"detail": "Not Found"}))

    def answer(self, status, body, headers=()):
        if callable(body):
            body(self)
            self.close_connection = True
            return
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        """Tests are quiet."""


@contextmanager
def routed_server(routes, port=0):
    server = RoutedServer(routes, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.is_down = True
        server.shutdown()
        thread.join()
        server.server_close()


def scripted_server(script):
    """A server that has only completions, which are `script(number of the request, payload)`."""
    numbers = itertools.count()
    return routed_server({"POST /v1/completions": lambda payload: script(next(numbers), payload)})


def solved_apples(payload):
    """Some solution of the question about apples, right or nearly so, going on from its prefix."""
    numbers = re.findall(r"\d+", payload["prompt"].partition("?")[0])
    if len(numbers) != 3:
        return 200, completions("x = 1\n")  # weights are being tried
    rng = random.Random(payload.get("seed", 0))
    a, b, c = numbers
    steps = [f"n0 = {a}", f"n1 = {b}", f"n2 = {c}", "t0 = n0 + n1", "answer = t0 - n2"]
    if rng.random() < 0.5:
        steps[3] = "t0 = n1 + n0"
    if rng.random() < 0.4:
        steps[4] = rng.choice(["answer = t0 + n2", "answer = 1 / 0", "answer = t0 -"])
    written = payload["prompt"].partition("?\n")[2].count("\n")
    return 200, completions("".join(f"{step}\n" for step in steps[written:]))


def apple_routes(answer=solved_apples):
    """A `transformers serve` that knows about apples."""

    def ok(payload):
        return 200, {}

    return {"POST /v1/completions": answer, "POST /load_model": ok, "POST /reset": ok}
