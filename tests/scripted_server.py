"""A completions server on loopback that answers as a test tells it to, also badly."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completions(*texts, finish_reason="stop"):
    """The body of a good answer."""
    choices = [{"text": text, "index": i, "finish_reason": finish_reason} for i, text in enumerate(texts)]
    return {"object": "text_completion", "choices": choices}


class ScriptedServer(ThreadingHTTPServer):
    """Answers with `script(request number, payload)`: status, body, perhaps headers. Remembers requests."""

    daemon_threads = True

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.asked = []
        self.authorizations = []
        self.lock = threading.Lock()
        self.at_once = self.most_at_once = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        """A client that hangs up is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        server = self.server
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            number = len(server.asked)
            server.asked.append((self.path, payload))
            server.authorizations.append(self.headers.get("Authorization"))
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            self.answer(*server.script(number, payload))
        finally:
            with server.lock:
                server.at_once -= 1

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
def scripted_server(script):
    server = ScriptedServer(script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
