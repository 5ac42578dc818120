"""Connections to the explorer that stay half open, crowd in or ask for much: the page still answers."""

import asyncio
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection

import httpx
import pytest

from explorer_cases import finished_run
from partway.reports.explorer.explorer import Explorer

pytest.importorskip("uvicorn", reason="the extra 'explore' is not installed")
connections = pytest.importorskip("partway.reports.explorer.connections")
guard = pytest.importorskip("partway.reports.explorer.guard")
server = pytest.importorskip("partway.reports.explorer.server")


@contextmanager
def serving(explorer):
    """The address of a real server that shows the explorer."""
    with server.listening("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()
        running = server.Server(server.configured(server.application(explorer, guard.Door.at(host, port))))
        thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])))
        thread.start()
        try:
            yield host, port
        finally:
            running.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    return Explorer(finished_run(tmp_path_factory.mktemp("run")))


def pulse(address):
    connection = HTTPConnection(*address, timeout=20)
    connection.request("GET", "/api/pulse")
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def is_closed(connection):
    connection.settimeout(10)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def drip(connection):
    for _ in range(100):
        connection.sendall(b"G")
        time.sleep(0.05)


HALVES = {
    "nothing": b"",
    "half a line": b"GET /api/pul",
    "half the headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "half a body": b"POST /api/trace HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{",
}


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_a_request_that_is_never_finished_is_hung_up_on(explorer, monkeypatch, sent):
    monkeypatch.setattr(connections, "LONGEST_EXCHANGE", 0.2)
    with serving(explorer) as address, socket.create_connection(address) as half_open:
        half_open.sendall(sent)
        assert is_closed(half_open)


def test_a_second_request_that_drips_is_hung_up_on(explorer, monkeypatch):
    monkeypatch.setattr(connections, "LONGEST_EXCHANGE", 0.5)
    with serving(explorer) as address, socket.create_connection(address) as connection:
        connection.sendall(b"GET /api/pulse HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        with pytest.raises(ConnectionError):
            drip(connection)


def test_a_crowd_of_half_open_connections_neither_blocks_nor_floods_the_log(explorer, caplog, capfd):
    with serving(explorer) as address, ExitStack() as crowd:
        half_open = [crowd.enter_context(socket.create_connection(address)) for _ in range(300)]
        assert pulse(address) == 200
        assert is_closed(half_open[0])
        for connection in half_open[-5:]:
            connection.sendall(b"\x00\x01 no HTTP\r\n\r\n")
        assert pulse(address) == 200
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_many_connections_one_after_the_other_are_all_answered(explorer):
    with serving(explorer) as address:
        assert all(pulse(address) == 200 for _ in range(connections.MOST_CONNECTIONS + 20))


@pytest.mark.processes
def test_programs_that_take_long_hold_up_no_other_request(explorer):
    def trace(address, number):
        text = f"n = {number}\nwhile True:\n    n += 1"
        url = f"http://{address[0]}:{address[1]}/api/trace"
        return httpx.post(url, json={"key": "train/1", "text": text}, timeout=60, trust_env=False).json()

    with serving(explorer) as address:
        found = []
        threads = [
            threading.Thread(target=lambda n=n: found.append(trace(address, n)["failure"]["kind"]))
            for n in range(3)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        answered = [pulse(address) for _ in range(5)]
        under_way = sum(thread.is_alive() for thread in threads)
        for thread in threads:
            thread.join()
    assert (answered, under_way, found) == ([200] * 5, 3, ["timeout"] * 3)
