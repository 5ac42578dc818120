"""A stand-in for the Hugging Face Hub on loopback: one data set as Parquet, served as the Hub serves it."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

COMMIT = "a" * 40
Configs = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]


@contextmanager
def hub_server(name: str, configs: Configs) -> Iterator[str]:
    """The address of a Hub that has the data set `name`: rows by configuration and split."""
    with Hub(name, configs) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Hub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, name: str, configs: Configs) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.name = name
        self.files = {"README.md": card(configs).encode()}
        for config, splits in configs.items():
            for split, rows in splits.items():
                self.files[f"{config}/{split}-00000-of-00001.parquet"] = parquet(rows)


def card(configs: Configs) -> str:
    listed = [
        {"config_name": config, "data_files": [{"split": s, "path": f"{config}/{s}-*"} for s in splits]}
        for config, splits in configs.items()
    ]
    return f"---\nconfigs: {json.dumps(listed)}\n---\n"


def parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), file)
    return file.getvalue()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def do_GET(self) -> None:
        name, files = self.server.name, self.server.files
        parts = urlsplit(self.path).path.strip("/").split("/")
        place, rest = "/".join(parts[:-1]), parts[-1]
        if self.path.startswith(f"/api/datasets/{name}/tree/{COMMIT}"):
            folder = self.path.partition(COMMIT)[2].partition("?")[0].strip("/")
            self.answer(200, json.dumps(inside(folder, files)).encode())
        elif place == f"api/datasets/{name}/revision" or f"{place}/{rest}" == f"api/datasets/{name}":
            siblings = [{"rfilename": path} for path in files]
            self.answer(200, json.dumps({"id": name, "sha": COMMIT, "siblings": siblings}).encode())
        elif self.path.startswith(f"/datasets/{name}/resolve/"):
            self.resolve("/".join(parts[5:]))
        else:
            self.answer(404, error="RepoNotFound")

    def do_HEAD(self) -> None:
        self.do_GET()

    def resolve(self, path: str) -> None:
        if path in self.server.files:
            self.answer(200, self.server.files[path])
        else:
            self.answer(404, error="EntryNotFound")

    def answer(self, status: int, body: bytes = b"", error: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{sha1(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if error:
            self.send_header("X-Error-Code", error)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A test has nothing to tell."""


def inside(folder: str, files: Mapping[str, bytes]) -> list[dict[str, object]]:
    """What the Hub lists of a folder: its files and folders, not what those hold."""
    found = [
        {"type": "file", "path": path, "oid": sha1(content).hexdigest(), "size": len(content)}
        for path, content in files.items()
        if path.rpartition("/")[0] == folder
    ]
    folders = {path.rpartition("/")[0] for path in files} - {""} if not folder else set()
    return [*found, *({"type": "directory", "path": path, "oid": COMMIT, "size": 0} for path in folders)]
