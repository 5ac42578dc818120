"""`partway explore` as a user runs it: served, stopped, refused, exported."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from explorer_cases import Writer, finished_run

pytest.importorskip("uvicorn", reason="the extra 'explore' is not installed")

QUIET = {**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": ""}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return finished_run(tmp_path_factory.mktemp("runs") / "run").directory


def partway(*args: object, timeout: float = 120, env: dict[str, str] | None = None):
    command = [sys.executable, "-m", "partway", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env or QUIET)


@contextmanager
def served(*args: object):
    """The address of a running server, and the server."""
    command = [sys.executable, "-m", "partway", "explore", *map(str, args)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def test_the_page_is_served_on_loopback_until_ctrl_c(run):
    with served(run, "--no-open") as (address, process):
        assert address.startswith("http://127.0.0.1:")
        assert httpx.get(address + "api/run", timeout=60).json()["name"] == "run"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr is not None
        assert process.stderr.read().splitlines()[-1] == "partway: interrupted"


def test_ctrl_c_does_not_wait_for_programs_that_run(tmp_path):
    writer = Writer(tmp_path / "run")
    endless = [f"x = {n}\nwhile True:\n    x += 1\n" for n in range(100)]
    rows = [
        {"task_id": "eggs", "completion": text, "passed": False, "result": "failed: error"}
        for text in endless
    ]
    writer.evaluate(1)
    (tmp_path / "run" / "evaluations" / "step-1.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    with served(tmp_path / "run", "--no-open") as (address, process), socket.socket() as asking:
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        asking.connect((host, int(port)))
        asking.sendall(f"GET /api/problem?key=dev/1 HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        for key in ("train/1", "dev/2"):  # others are not held up by it
            assert httpx.get(address + "api/problem", params={"key": key}, timeout=60).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_run_in_progress_shows_what_is_new_after_a_refresh(tmp_path):
    writer = Writer(tmp_path / "run")
    with served(tmp_path / "run", "--no-open") as (address, _):
        before = httpx.get(address + "api/run", timeout=60).json()
        writer.sample()
        assert httpx.get(address + "api/pulse", timeout=60).json()["version"] != before["version"]
        after = httpx.get(address + "api/run", timeout=60).json()
        assert (before["totals"]["fcs"], after["totals"]["fcs"]) == (2, 5)


def test_bound_elsewhere_the_address_holds_a_token(run):
    with served(run, "--no-open", "--host", "0.0.0.0") as (address, _):
        base, _, token = address.partition("?token=")
        port = base.rstrip("/").rsplit(":", 1)[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, follow_redirects=True) as client:
            assert client.get("/api/run").status_code == 401
            assert client.get("/", params={"token": token}).status_code == 200
            assert client.get("/api/run").status_code == 200


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["nowhere"],
            "partway: error: nowhere: no run here (config.yaml is missing); expected an output_dir",
        ),
        (["{run}", "nowhere"], "partway: error: nowhere: no run here"),
        (
            ["{run}", "--host", "192.0.2.1"],
            "partway: error: --host 192.0.2.1: not an address of this machine",
        ),
    ],
)
def test_a_mistake_is_one_line(run, args, message):
    result = partway("-q", "explore", *[arg.format(run=run) for arg in args])
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


def test_a_taken_port_is_one_line(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = partway("-q", "explore", run, "--port", port)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith(f"partway: error: port {port} is taken; choose another")


def test_a_missing_extra_is_named(run, tmp_path):
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError(name='uvicorn')\n")
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = partway("-q", "explore", run, env={**QUIET, "PYTHONPATH": paths})
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "pip install 'partway[explore]'" in result.stderr


def test_an_export_is_a_folder_that_needs_no_server(run, tmp_path):
    result = partway("-q", "explore", run, "--export", tmp_path / "copy")
    assert result.returncode == 0, result.stderr
    assert Path(result.stdout.strip()) == tmp_path / "copy" / "index.html"
    script = (tmp_path / "copy" / "data" / "run.js").read_text()
    facts = json.loads(script.removeprefix('partwayData("run", ').removesuffix(");\n"))
    assert facts["name"] == "run"
    assert str(tmp_path) not in "".join(p.read_text() for p in (tmp_path / "copy").rglob("*.js"))


def test_help_has_examples():
    result = partway("explore", "--help")
    assert result.returncode == 0
    assert "partway explore runs/fcs-pcs runs/mle" in result.stdout
