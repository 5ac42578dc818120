"""The engine over HTTP against a scripted server on loopback: good, slow, broken and lying ones."""

import gzip
import json
import threading
import time
from contextlib import ExitStack

import pytest

from partway.errors import ConfigError, EngineError
from partway.models import bounded_http, completions_client
from partway.models.engine import Request
from partway.models.prompts import FewShotPrompt
from partway.models.remote_engine import RemoteEngine
from partway.models.settings import SamplingSettings
from partway.parsing import MAX_CHARACTERS
from partway.problem import Problem
from partway.solution import EMPTY, Solution
from scripted_server import completions, scripted_server

SETTINGS = SamplingSettings(temperature=0.8, top_p=0.95, max_completion_length=64)
SECRET = "sk-very-secret-123"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("PARTWAY_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def pauses():
    """The pauses an engine made, instead of making them."""
    return []


@pytest.fixture
def connect(pauses):
    """Makes engines that only note their pauses, and closes them in the end."""
    with ExitStack() as stack:
        yield lambda url, **options: stack.enter_context(RemoteEngine(url, sleep=pauses.append, **options))


def requests(problems=1, count=4, prefix=EMPTY):
    return [Request(Problem(f"p{n}", f"question {n}", 6), prefix, count) for n in range(problems)]


def as_asked(number, payload):
    """A good server: as many completions as it is asked for."""
    return 200, completions(*(f"answer = {i}\n" for i in range(payload["n"])))


def test_a_request_says_all_that_sampling_needs(connect):
    with scripted_server(as_asked) as server:
        engine = connect(f"{server.url}/", model="tiny", prompt=FewShotPrompt("# Task:\n\n"))
        engine.complete(requests(prefix=Solution(("n0 = 1",))), SETTINGS, seed=1)
    ((path, payload),) = server.asked
    seed = payload.pop("seed")
    assert 0 <= seed < 2**31
    assert path == "/v1/completions"
    assert payload == {
        "model": "tiny",
        "prompt": "# Task:\n\n# question 0\nn0 = 1\n",
        "n": 4,
        "max_tokens": 64,
        "temperature": 0.8,
        "top_p": 0.95,
        "stop": ["\n#"],
    }


def test_what_is_not_asked_for_is_not_sent_and_what_is_extra_is(connect):
    with scripted_server(as_asked) as server:
        connect(server.url).complete(requests(), SETTINGS, 1)
        settings = SamplingSettings(top_k=5)
        connect(server.url, extra_body={"min_p": 0.1}).complete(requests(), settings, 1)
    (_, plain), (_, extra) = server.asked
    assert not {"model", "top_k"} & plain.keys()
    assert (extra["top_k"], extra["min_p"]) == (5, 0.1)


def test_equal_completions_are_counted_and_cut_at_their_end(connect):
    def script(number, payload):
        return 200, completions(
            "answer = 6\nprint()", "answer = 6\n# Next?", "n0 = 1\nn1", finish_reason="length"
        )

    with scripted_server(script) as server:
        (draws,) = connect(server.url).complete(requests(count=3), SETTINGS, 1)
    assert [(d.completion, d.text, d.count, d.finished) for d in draws] == [
        ("answer = 6\n", "answer = 6\n", 2, True),
        ("n0 = 1\nn1", "n0 = 1\n", 1, False),
    ]


def test_large_counts_are_asked_for_in_several_calls(connect):
    with scripted_server(as_asked) as server:
        (draws,) = connect(server.url).complete(requests(count=300), SETTINGS, 1)
    assert [payload["n"] for _, payload in server.asked] == [128, 128, 44]
    assert sum(draw.count for draw in draws) == 300


def test_a_server_that_ignores_n_is_asked_again_with_other_seeds(connect):
    with scripted_server(lambda number, payload: (200, completions("answer = 6\n"))) as server:
        engine = connect(server.url, concurrency=1)
        found = engine.complete(requests(problems=2, count=3), SETTINGS, 1)
    assert [[d.count for d in draws] for draws in found] == [[3], [3]]
    assert [payload["n"] for _, payload in server.asked] == [3, 1, 1, 1, 1, 1]
    assert len({payload["seed"] for _, payload in server.asked}) == 6


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_n_is_asked_for_single_completions(connect, status):
    def script(number, payload):
        if payload["n"] > 1:
            return status, {"error": {"message": "n must be 1"}}
        return 200, completions("answer = 6\n")

    with scripted_server(script) as server:
        (draws,) = connect(server.url).complete(requests(count=3), SETTINGS, 1)
    assert [draw.count for draw in draws] == [3]


def test_seeds_belong_to_seed_problem_and_sample_not_to_the_order_of_requests(connect):
    def seeds(problems, seed, concurrency):
        with scripted_server(lambda number, payload: (200, completions("answer = 1\n"))) as server:
            connect(server.url, concurrency=concurrency).complete(problems, SETTINGS, seed)
        return sorted((payload["prompt"], payload["seed"]) for _, payload in server.asked)

    asked = requests(problems=4, count=3)
    assert seeds(asked, 1, 1) == seeds(asked[::-1], 1, 8) != seeds(asked, 2, 1)


def test_what_passes_by_waiting_is_tried_again_later_each_time(connect, pauses):
    troubles = [(429, {}), (500, {}), (502, b"<html>"), (503, {}), (504, {})]

    def script(number, payload):
        return troubles[number] if number < len(troubles) else as_asked(number, payload)

    with scripted_server(script) as server:
        connect(server.url).complete(requests(), SETTINGS, 1)
    assert len(server.asked) == 6
    assert all(2**n / 2 <= pause <= 2**n for n, pause in enumerate(pauses))


@pytest.mark.parametrize(
    ("header", "at_least"),
    [
        ("17", 17),
        ("Wed, 21 Oct 2065 07:28:00 GMT", None),
        (f"Wed, 21 Oct {'9' * 20} 07:28:00 GMT", None),
        ("9" * 5_000, None),
        ("soon", 0),
        ("nan", 0),
        ("-5", 0),
    ],
    ids=lambda value: str(value)[:30],
)
def test_the_server_decides_how_long_to_wait(connect, pauses, header, at_least):
    def script(number, payload):
        return (
            (429, {"error": "slow down"}, {"Retry-After": header})
            if number == 0
            else as_asked(number, payload)
        )

    with scripted_server(script) as server:
        engine = connect(server.url)
        if at_least is None:
            with pytest.raises(EngineError, match="status 429: slow down"):
                engine.complete(requests(), SETTINGS, 1)
        else:
            engine.complete(requests(), SETTINGS, 1)
            assert at_least <= pauses[0] <= max(at_least, 1)


def test_a_server_that_never_recovers_is_given_up(connect, pauses):
    with scripted_server(lambda number, payload: (503, {"detail": "loading"})) as server:
        engine = connect(server.url, retries=3)
        with pytest.raises(
            EngineError, match="no answer after 4 attempts, the last one: status 503: loading"
        ):
            engine.complete(requests(), SETTINGS, 1)
    assert len(pauses) == 3


def test_no_server_is_one_clear_line_at_once(connect, pauses):
    with scripted_server(as_asked) as server:
        url = server.url
    with pytest.raises(EngineError, match=rf"^{url}: no connection .*; is the server running there\?$"):
        connect(url).complete(requests(), SETTINGS, 1)
    assert pauses == []


def test_a_server_that_dies_in_between_is_waited_for_then_given_up(connect, pauses):
    def script(number, payload):
        return (*as_asked(number, payload), {"Connection": "close"})

    with scripted_server(script) as server:
        engine = connect(server.url, retries=2)
        engine.complete(requests(), SETTINGS, 1)
    with pytest.raises(EngineError, match="no answer after 3 attempts, the last one: no connection"):
        engine.complete(requests(), SETTINGS, 1)
    assert len(pauses) == 2


def test_what_a_server_gave_up_is_asked_again_and_is_no_sample(connect, pauses):
    def script(number, payload):
        reason = ["abort", "error"][number] if number < 2 else "stop"
        return 200, completions(*["answer = 6\n"] * payload["n"], finish_reason=reason)

    with scripted_server(script) as server:
        ((draw,),) = connect(server.url).complete(requests(), SETTINGS, 1)
    assert (draw.count, len(server.asked), len(pauses)) == (4, 3, 2)


def test_a_server_that_goes_on_with_another_model_is_refused(connect):
    def script(number, payload):
        names = {"model": ["one", None, "one", "other"][number]}
        return 200, completions(*["answer = 6\n"] * payload["n"]) | names

    with scripted_server(script) as server:
        engine = connect(server.url, concurrency=1)
        engine.complete(requests(problems=3), SETTINGS, 1)
        with pytest.raises(EngineError, match="it answered as one and now as other"):
            engine.complete(requests(), SETTINGS, 1)


def test_cookies_are_neither_kept_nor_sent_back():
    def script(number, payload):
        return 200, {}, {"Set-Cookie": f"cookie-{number}=1"}

    http = bounded_http.BoundedHttp(None, connections=1, timeout=10)
    with scripted_server(script) as server:
        for _ in range(2):
            http.send("POST", server.url, {}, 1000)
        _, client = http._open()
        assert not client.cookies
        http.close()


def hang_up(handler):
    handler.connection.close()


def broken_headers(handler):
    handler.wfile.write(f"HTTP/1.1 200 OK\r\nBearer {SECRET} {'x' * 9_000}\r\n\r\n".encode())


def half_an_answer(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65536)


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


def continuing(handler):
    while True:
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.002)


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


ENDLESS = [(dripping, 2), (dripping_headers, 2), (continuing, 2), (flooding, 2)]
BROKEN = [
    hang_up,
    half_an_answer,
    broken_headers,
    *map(in_chunks, (b"zz\r\n", b"-5\r\nhello", b"f" * 18 + b"\r\nhello", b"5\r\nhel")),
    *map(of_length, (-5, "9" * 30, "5, 6", "five")),
]


@pytest.mark.parametrize(("body", "attempts"), [*((body, 3) for body in BROKEN), *ENDLESS])
def test_broken_connections_and_endless_waiting_are_given_up(connect, pauses, body, attempts):
    with scripted_server(lambda number, payload: (200, body)) as server:
        engine = connect(server.url, retries=2, timeout=0.3)
        began = time.monotonic()
        with pytest.raises(EngineError, match=f"no answer after {attempts} attempts"):
            engine.complete(requests(), SETTINGS, 1)
        assert time.monotonic() - began < 5


def test_packed_answers_are_read_when_small_and_refused_when_they_would_be_large(connect, monkeypatch):
    monkeypatch.setattr(completions_client, "LARGEST_BODY", 1 << 20)
    good = json.dumps(completions("answer = 6\n")).encode()
    bomb = gzip.compress(b" " * (1 << 26))
    answers = [
        ("gzip", gzip.compress(good), None),
        ("gzip", bomb, "an answer of more than 1 MiB"),
        ("gzip, gzip", gzip.compress(bomb), "packed as 'gzip, gzip', expected it unpacked"),
        ("gzip", good, "cannot be unpacked"),
    ]
    for encoding, body, message in answers:
        reply = (200, body, {"Content-Encoding": encoding})
        with scripted_server(lambda number, payload, reply=reply: reply) as server:
            engine = connect(server.url)
            if message is None:
                ((draw,),) = engine.complete(requests(count=1), SETTINGS, 1)
                assert draw.text == "answer = 6\n"
            else:
                with pytest.raises(EngineError, match=message):
                    engine.complete(requests(count=1), SETTINGS, 1)


def test_no_more_is_unpacked_than_is_wanted():
    assert len(bounded_http._unpacker("gzip")(gzip.compress(b" " * (1 << 26)), 1000)) == 1000


def test_of_a_text_without_end_only_so_much_is_taken(connect):
    def script(number, payload):
        return 200, completions("n0 = 1\nn1 = " + "1" * 5_000_000)

    with scripted_server(script) as server:
        ((draw,),) = connect(server.url).complete(requests(count=1), SETTINGS, 1)
    assert (len(draw.completion), draw.finished) == (MAX_CHARACTERS, False)


def test_half_a_surrogate_pair_does_not_get_into_files(connect):
    with scripted_server(lambda number, payload: (200, completions("answer = '\ud800'\n"))) as server:
        ((draw,),) = connect(server.url).complete(requests(count=1), SETTINGS, 1)
    assert draw.completion == "answer = '?'\n"


def test_what_a_server_says_does_not_steer_the_terminal(connect):
    said = {"error": "\x1b[2J\x1b]0;title\x07no \ud800 room"}
    with scripted_server(lambda number, payload: (413, said)) as server:
        engine = connect(server.url)
        with pytest.raises(EngineError, match=r"status 413: \[2J \]0;title no room$"):
            engine.complete(requests(), SETTINGS, 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html><body>Welcome</body></html>", "expected JSON with choices and texts, got <html>"),
        (b"", "got nothing"),
        (b"\xff\xfe", "expected JSON"),
        (b"[" * 100_000, "expected JSON"),
        (b"\xef\xbb\xbf{}", "expected JSON"),
        (b'{"choices": [{"text": NaN}]}', "expected JSON"),
        (b'{"choices": [{"text": "", "index": ' + b"9" * 5_000 + b"}]}", "expected JSON"),
        ([], "expected JSON"),
        ({"choices": None}, "expected JSON"),
        ({"choices": [{"message": {"content": "hi"}}]}, "expected JSON"),
        ({"choices": [{"text": 5}]}, "expected JSON"),
        ({"choices": ["text"]}, "expected JSON"),
        (completions(), "0 completions came and 4 were asked for"),
        (completions(*"abcde"), "5 completions came and 4 were asked for"),
        (endless, "an answer of more than 1 MiB"),
    ],
    ids=range(15),
)
def test_a_server_that_lies_is_one_clear_line(connect, monkeypatch, pauses, body, message):
    monkeypatch.setattr(completions_client, "LARGEST_BODY", 1 << 20)
    with scripted_server(lambda number, payload: (200, body)) as server, pytest.raises(EngineError) as caught:
        connect(server.url).complete(requests(), SETTINGS, 1)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert pauses == []


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, {"error": {"message": "wrong key"}}, "status 401: wrong key; set .* PARTWAY_API_KEY"),
        (
            404,
            {"detail": "Not Found"},
            "status 404: Not Found; expected an address like http://localhost:8000/v1",
        ),
        (307, b"", "status 307: nothing"),
        (413, b"too large", "status 413: too large"),
    ],
)
def test_refusals_say_why_and_what_to_try(connect, status, body, message):
    with scripted_server(lambda number, payload: (status, body)) as server:
        engine = connect(server.url)
        with pytest.raises(EngineError, match=message):
            engine.complete(requests(), SETTINGS, 1)


def test_finished_results_are_handed_over_before_an_error_is_raised(connect):
    def script(number, payload):
        return (
            (400, {"error": "too long"}) if "question 5" in payload["prompt"] else as_asked(number, payload)
        )

    with scripted_server(script) as server:
        stream = connect(server.url, concurrency=2).stream(requests(8), SETTINGS, 1)
        found = set()
        with pytest.raises(EngineError, match="too long"):
            found.update(index for index, _ in stream)
    assert {0, 1, 2, 3, 4} <= found
    assert 5 not in found


def test_so_many_requests_at_once_and_no_more(connect):
    barrier = threading.Barrier(3)

    def script(number, payload):
        barrier.wait(timeout=10)
        return as_asked(number, payload)

    with scripted_server(script) as server:
        connect(server.url, concurrency=3).complete(requests(problems=9), SETTINGS, 1)
    assert server.most_at_once == 3
    with pytest.raises(ConfigError, match="concurrency is 0"):
        connect(server.url, concurrency=0)


def test_the_key_is_sent_and_shown_nowhere(connect, monkeypatch):
    monkeypatch.setenv("PARTWAY_API_KEY", f" {SECRET}\n")
    answers = [
        (200, completions(f"key = '{SECRET}'\n")),
        (401, {"error": {"message": f"Incorrect API key provided: {SECRET}"}}),
        (200, broken_headers),
        (200, {}, {"Content-Encoding": SECRET}),
    ]
    with scripted_server(lambda number, payload: answers[number]) as server:
        engine = connect(server.url, retries=0)
        told = str(engine.complete(requests(count=1), SETTINGS, 1))
        for _ in answers[1:]:
            with pytest.raises(EngineError) as caught:
                engine.complete(requests(count=1), SETTINGS, 1)
            told += str(caught.value)
    assert server.authorizations == [f"Bearer {SECRET}"] * 4
    assert (told.count("***"), len(told) < 2_000) == (5, True)  # the sample twice
    assert SECRET not in f"{told} {engine.clients[0].url}"


def test_the_key_for_openai_goes_nowhere_in_the_clear(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert completions_client.api_key("http://example.org/v1") is None
    assert completions_client.api_key("https://example.org/v1") == SECRET
    monkeypatch.setenv("PARTWAY_API_KEY", "other")
    assert completions_client.api_key("https://example.org/v1") == "other"


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(connect, monkeypatch):
    monkeypatch.setenv("PARTWAY_API_KEY", f"{SECRET}\nX-Other: 1")
    with pytest.raises(EngineError) as caught:
        connect("http://localhost:1/v1")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000/v1",
        "ftp://host/v1",
        "",
        "http://",
        "http://[::1",
        "http://host:99999/v1",
        "http://host:-1/v1",
        "http://xn--/v1",
        "http://host/\ud800",
        "http://host/" + "a" * 70_000,
        "http://host\n/v1",
        f"htp://user:{SECRET}@host/v1",
        f"user:{SECRET}@host/v1",
        f"http://{SECRET}@/v1",
    ],
    ids=range(14),
)
def test_addresses_that_are_none_are_refused(connect, url):
    with pytest.raises(
        EngineError, match=r"^[ -~]{,250}expected one like http://localhost:8000/v1$"
    ) as caught:
        connect(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("url", [f"http://user:{SECRET}@host/v1", f"https://host/v1?key={SECRET}"])
def test_addresses_that_hold_secrets_are_refused_without_showing_them(connect, url):
    with pytest.raises(EngineError, match="PARTWAY_API_KEY") as caught:
        connect(url)
    assert SECRET not in str(caught.value)


def test_several_servers_share_the_work_and_one_that_is_gone_leaves_it_to_the_others(connect):
    with (
        scripted_server(as_asked) as one,
        scripted_server(as_asked) as other,
        scripted_server(lambda number, payload: (500, {"error": "out of memory"})) as broken,
    ):
        engine = connect(f"{one.url}, {other.url},{broken.url}")
        draws = engine.complete(requests(problems=12), SETTINGS, seed=1)
    assert [sum(draw.count for draw in of_one) for of_one in draws] == [4] * 12
    assert min(len(one.asked), len(other.asked)) >= 3
    assert broken.asked


def test_a_server_that_refuses_leaves_its_requests_to_the_others(connect):
    """It may lack the model or the key, or take only single requests; none of it is the others' fault."""

    def single(number, payload):
        return (400, {}) if payload["n"] > 1 else as_asked(number, payload)

    refusals = [lambda number, payload, status=status: (status, {}) for status in (401, 404, 413)]
    with ExitStack() as stack:
        bad = [stack.enter_context(scripted_server(script)) for script in refusals]
        one, good = (stack.enter_context(scripted_server(script)) for script in (single, as_asked))
        engine = connect(",".join(server.url for server in (*bad, one, good)), concurrency=4)
        draws = engine.complete(requests(problems=12), SETTINGS, seed=1)
        assert [sum(draw.count for draw in of_one) for of_one in draws] == [4] * 12
        assert all(1 <= len(server.asked) <= 4 for server in bad[:2]), "they are asked no more"
        assert {payload["n"] for _, payload in good.asked} >= {4}, "it is asked for several"
        everybody = connect(",".join(server.url for server in bad))
        with pytest.raises(EngineError, match="status 413"):
            everybody.complete(requests(), SETTINGS, 1)


def test_an_answer_of_more_values_than_memory_is_for_is_not_read():
    with pytest.raises(ValueError, match="more than 1,000,000 values"):
        completions_client.parsed("[" + "1," * 1_000_000 + "1]")
