"""Connections to the explorer that crowd in or ask for much: every request is answered."""

import asyncio
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection

import httpx
import pytest
from explorer_cases import finished_run

from runexplorer.explorer import Explorer

pytest.importorskip("uvicorn", reason="the extra 'explore' is not installed")
guard = pytest.importorskip("runexplorer.guard")
server = pytest.importorskip("runexplorer.server")


@contextmanager
def serving(explorer):
    """The address of a real server that shows the explorer."""
    with server.listening("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()
        running = server.QuickServer(
            server.configured(server.application(explorer, guard.Door.at(host, port)))
        )
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


def test_more_connections_than_fit_are_told_so_and_later_ones_are_served(explorer, caplog, capfd):
    with serving(explorer) as address:
        with ExitStack() as crowd:
            for _ in range(server.MOST_CONNECTIONS - 2):
                crowd.enter_context(socket.create_connection(address))
            assert pulse(address) == 200
            crowd.enter_context(socket.create_connection(address))
            assert pulse(address) == 503
        assert all(pulse(address) == 200 for _ in range(server.MOST_CONNECTIONS + 20))
    assert caplog.records == []
    assert capfd.readouterr().err == ""


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
