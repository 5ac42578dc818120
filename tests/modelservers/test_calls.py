"""Calls to servers on loopback that are slow, broken, endless, or say the key back: each call ends."""

import gzip
import json
import time

import pytest
from scripted_server import completions, scripted_server

from modelservers import calls
from modelservers.calls import Calls, Trouble
from partway.errors import EngineError

SECRET = "sk-very-secret-123"
GOOD = completions("answer = 6\n")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("PARTWAY_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def asked(*answer, timeout=10.0):
    """What comes of a call that is answered so."""
    with scripted_server(lambda number, payload: answer) as server:
        client = Calls(server.url, timeout=timeout, connections=2)
        try:
            return client.post("/v1/completions", {"prompt": "1"})
        finally:
            client.close()


def hang_up(handler):
    handler.connection.close()


def broken_headers(handler):
    handler.wfile.write(f"HTTP/1.1 200 OK\r\nBearer {SECRET} {'x' * 9_000}\r\n\r\n".encode())


def half_an_answer(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')


def dripping(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b" ")
        time.sleep(0.02)


def dripping_headers(handler):
    handler.send_response(200)
    handler.flush_headers()
    for number in range(1000):
        handler.wfile.write(f"X-{number}: 1\r\n".encode())
        time.sleep(0.02)


def flooding(handler):
    while True:
        handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000)


def in_chunks(*chunks):
    def send(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            handler.wfile.write(chunk)

    return send


def of_length(length):
    def send(handler):
        handler.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode() + b"{}")

    return send


BROKEN = [
    *(hang_up, half_an_answer, broken_headers, dripping, dripping_headers, flooding),
    *map(in_chunks, (b"zz\r\n", b"-5\r\nhello", b"f" * 18 + b"\r\nhello", b"5\r\nhel")),
    *map(of_length, (-5, "9" * 30, "5, 6", "five")),
]


@pytest.mark.parametrize("body", BROKEN)
def test_broken_connections_and_endless_waiting_end_in_one_line(body, monkeypatch):
    monkeypatch.setenv("PARTWAY_API_KEY", SECRET)
    began = time.monotonic()
    with pytest.raises(Trouble) as caught:
        asked(200, body, timeout=0.5)
    assert time.monotonic() - began < 5
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert SECRET not in str(caught.value)


def test_packed_answers_are_read_when_small_and_refused_when_they_would_be_large(monkeypatch):
    monkeypatch.setattr(calls, "LARGEST_BODY", 1 << 20)
    good, bomb = json.dumps(GOOD).encode(), gzip.compress(b" " * (1 << 26))
    assert asked(200, gzip.compress(good), {"Content-Encoding": "gzip"}) == GOOD
    for encoding, body, message in (
        ("gzip", bomb, "an answer of more than 1 MiB"),
        ("gzip, gzip", gzip.compress(bomb), "packed as 'gzip, gzip', expected it unpacked"),
        ("gzip", good, "DecodingError"),
    ):
        with pytest.raises(Trouble, match=message):
            asked(200, body, {"Content-Encoding": encoding})


@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>Welcome</body></html>",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}" + b"9" * 5_000,
        b"\xef\xbb\xbf{}",
    ],
    ids=range(5),
)
def test_what_is_not_json_is_shown_on_one_short_line(body):
    with pytest.raises(Trouble, match="/v1/completions did not give JSON but ") as caught:
        asked(200, body)
    assert len(str(caught.value)) < 300


def test_an_answer_of_more_values_than_memory_is_for_is_not_read():
    with pytest.raises(ValueError, match="more than 1,000,000 values"):
        calls.parsed("[" + "1," * 1_000_000 + "1]")


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, {"error": {"message": "wrong key"}}, "status 401: wrong key; set .* PARTWAY_API_KEY"),
        (
            404,
            {"detail": "Not Found"},
            "status 404: Not Found; expected an address like http://localhost:8000",
        ),
        (307, b"", "status 307: nothing"),
        (413, {"error": "\x1b[2J\x1b]0;title\x07no \ud800 room"}, r"status 413: \\x1b\[2J.*no .{6} room$"),
    ],
)
def test_a_refusal_says_why_and_what_to_try_without_steering_the_terminal(status, body, message):
    with pytest.raises(Trouble, match=message) as caught:
        asked(status, body)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("said", "wait"), [("17", 17), ("9" * 5_000, float("inf")), ("soon", 0), ("nan", 0), ("-5", 0)]
)
def test_the_server_says_how_long_to_wait(said, wait):
    with pytest.raises(Trouble, match="slow down") as caught:
        asked(429, {"error": "slow down"}, {"Retry-After": said})
    assert caught.value.wait == wait


def test_the_key_is_sent_and_shown_nowhere(monkeypatch):
    monkeypatch.setenv("PARTWAY_API_KEY", f" {SECRET}\n")
    answers = [(200, completions(f"key = '{SECRET}'\n")), (401, {"error": f"Incorrect API key: {SECRET}"})]
    with scripted_server(lambda number, payload: answers[number]) as server:
        client = Calls(server.url, timeout=10, connections=1)
        told = str(client.post("/v1/completions", {}))
        with pytest.raises(Trouble) as caught:
            client.post("/v1/completions", {})
        client.close()
    assert server.authorizations == [f"Bearer {SECRET}"] * 2
    assert (told + str(caught.value)).count("***") == 2
    assert SECRET not in f"{told} {caught.value} {client.root}"


def test_the_key_for_openai_goes_nowhere_in_the_clear(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert calls.api_key("http://example.org/v1") is None
    assert calls.api_key("https://example.org/v1") == SECRET
    monkeypatch.setenv("PARTWAY_API_KEY", "other")
    assert calls.api_key("https://example.org/v1") == "other"


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(monkeypatch):
    monkeypatch.setenv("PARTWAY_API_KEY", f"{SECRET}\nX-Other: 1")
    with pytest.raises(EngineError) as caught:
        calls.api_key("http://localhost:1/v1")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *("localhost:8000/v1", "ftp://host/v1", "", "http://", "http://[::1", "http://host:99999/v1"),
        *("http://host:-1/v1", "http://xn--/v1", "http://host/\ud800", "http://host/" + "a" * 70_000),
        *(
            "http://host\n/v1",
            f"htp://user:{SECRET}@host/v1",
            f"user:{SECRET}@host/v1",
            f"http://{SECRET}@/v1",
        ),
    ],
    ids=range(14),
)
def test_addresses_that_are_none_are_refused(url):
    with pytest.raises(
        EngineError, match=r"^[ -~]{,250}expected one like http://localhost:8000/v1$"
    ) as caught:
        Calls(url, timeout=1, connections=1)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("url", [f"http://user:{SECRET}@host/v1", f"https://host/v1?key={SECRET}"])
def test_addresses_that_hold_secrets_are_refused_without_showing_them(url):
    with pytest.raises(EngineError, match="PARTWAY_API_KEY") as caught:
        Calls(url, timeout=1, connections=1)
    assert SECRET not in str(caught.value)
