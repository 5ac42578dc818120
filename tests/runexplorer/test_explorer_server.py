"""The explorer's server: who is let in, what goes out, and that text stays text."""

import asyncio
import json
import re
import socket
from pathlib import Path

import httpx
import pytest
from explorer_cases import Writer, finished_run

from partway.buffer import Verdict
from partway.errors import ConfigError
from partway.problem import Problem
from runexplorer import export
from runexplorer.explorer import Explorer
from runexplorer.export import FILES

pytest.importorskip("uvicorn", reason="the extra 'explore' is not installed")
guard = pytest.importorskip("runexplorer.guard")
server = pytest.importorskip("runexplorer.server")

HOME = "127.0.0.1:8000"
HOSTILE = [
    "<script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "javascript:document.title='broken'",
    "safe\u202egnp.exe",
    "</textarea><svg onload=alert(1)>",
    "line\u2028separator \x00 \x1b[31m",
]


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    return Explorer(finished_run(tmp_path_factory.mktemp("run")))


def ask(explorer, path, *, method="GET", door=None, host=HOME, headers=None, **options):
    """What the application answers to one request."""
    door = door or guard.Door.at("127.0.0.1", 8000)

    async def answer():
        transport = httpx.ASGITransport(server.application(explorer, door))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOME}") as client:
            return await client.request(method, path, headers={"host": host, **(headers or {})}, **options)

    return asyncio.run(answer())


def post(explorer, content, headers=None, **options):
    headers = {"content-type": "application/json", **(headers or {})}
    return ask(explorer, "/api/trace", method="POST", content=content, headers=headers, **options)


def test_the_page_and_its_files_are_served(explorer):
    page = FILES["index.html"].read_text()
    asked_for = re.findall(r'(?:src|href)="([\w.]+)"', page)
    assert sorted(asked_for) == sorted(set(FILES) - {"index.html"})
    kinds = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
    for name in FILES:
        response = ask(explorer, "/" if name == "index.html" else f"/{name}")
        kind = response.headers["content-type"].split(";")[0]
        assert (response.status_code, kind) == (200, kinds[Path(name).suffix])


def test_no_other_file_is_served(explorer):
    for path in ("/server.py", "/../server.py", "/static/app.js", "/%2e%2e/server.py", "/favicon.ico"):
        assert ask(explorer, path).status_code == 404


def test_every_answer_forbids_scripts_of_others(explorer):
    for path in ("/", "/api/run", "/nowhere"):
        headers = ask(explorer, path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_the_run_the_list_and_a_problem_are_json(explorer):
    assert ask(explorer, "/api/run").json()["splits"] == {"train": 3, "dev": 2}
    assert ask(explorer, "/api/list").json() == json.loads(json.dumps(explorer.index.to_json()))
    assert ask(explorer, "/api/problem", params={"key": "train/1"}).json()["id"] == "wheels"
    assert ask(explorer, "/api/pulse").json() == {**explorer.pulse(), "step": 4, "finished": True}


def test_what_is_wrong_with_a_request_is_said(explorer):
    refused = ask(explorer, "/api/problem", params={"key": "train/99"})
    assert (refused.status_code, "no problem 'train/99'" in refused.json()["error"]) == (404, True)


def test_a_run_that_cannot_be_read_is_an_error_with_a_sentence(tmp_path):
    explorer = Explorer(finished_run(tmp_path))
    (tmp_path / "final" / "buffer.jsonl").write_text("{\n")
    response = ask(explorer, "/api/list")
    assert (response.status_code, "not JSON" in response.json()["error"]) == (500, True)


def test_a_typed_program_is_traced(explorer):
    answer = post(explorer, json.dumps({"key": "train/1", "text": "answer = 25"})).json()
    assert answer["verdict"] == "new_fully_correct"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (json.dumps({"key": "train/1", "text": "x" * 10_001}), "at most 10,000"),
        (json.dumps({"key": "train/1", "text": "é" * 100_000}), "more than 80,000 bytes"),
        (json.dumps({"key": "train/1"}), "expected a JSON object with the texts"),
        (json.dumps(["train/1"]), "expected a JSON object"),
        ("{", "Expecting"),
        ("[" * 79_000, "nested too deeply"),
        ('{"key":' * 11_000, "nested too deeply"),
        (json.dumps({"key": "train/1", "text": "a=1;" * 201}), "at most 200 are shown"),
        (b"\xff", "decode"),
    ],
)
def test_a_body_that_is_no_program_is_refused(explorer, content, reason):
    response = post(explorer, content)
    assert response.status_code == 400
    assert reason in response.json()["error"]


def test_a_form_cannot_post_a_program(explorer):
    response = post(explorer, "{}", headers={"content-type": "text/plain"})
    assert response.status_code == 400


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "192.168.0.7"),
        *("127.0.0.1:evil.com", "localhost:8000:evil.com", "[::1]evil.com", "[::1", "127.0.0.1:", "::1:8000"),
    ],
)
def test_a_name_that_leads_here_by_trickery_is_refused(explorer, host):
    assert ask(explorer, "/api/run", host=host).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:9999", "[::1]:8000", "localhost"])
def test_the_names_of_this_machine_are_known(explorer, host):
    assert ask(explorer, "/api/run", host=host).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9000"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_are_refused(explorer, headers):
    assert ask(explorer, "/api/run", headers=headers).status_code == 403
    assert post(explorer, "{}", headers=headers).status_code == 403


def test_the_page_itself_may_ask_and_may_be_linked_to(explorer):
    own = {"origin": f"http://{HOME}", "sec-fetch-site": "same-origin"}
    assert ask(explorer, "/api/run", headers=own).status_code == 200
    assert ask(explorer, "/", headers={"sec-fetch-site": "cross-site"}).status_code == 200


def test_bound_elsewhere_the_token_opens_and_nothing_else_does(explorer):
    door = guard.Door.at("0.0.0.0", 8000)
    assert door.token is not None
    assert door.token in door.address
    host = "192.168.0.7:8000"
    for path in ("/", "/api/run", "/app.js", "/?token=", "/?token=guess", f"/api/run?token={door.token}"):
        assert ask(explorer, path, door=door, host=host).status_code == 401
    welcome = ask(explorer, f"/?token={door.token}", door=door, host=host)
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    inside = {"cookie": cookie.split(";")[0]}
    assert ask(explorer, "/api/run", door=door, host=host, headers=inside).status_code == 200
    assert ask(explorer, "/api/run", door=door, host="evil.example", headers=inside).status_code == 421
    assert ask(explorer, "/api/run", door=door, host="192.168.0.7:evil", headers=inside).status_code == 421
    foreign = {**inside, "origin": "http://evil.example"}
    assert ask(explorer, "/api/run", door=door, host=host, headers=foreign).status_code == 403


@pytest.mark.parametrize(
    "foreign", ["{a}=b", "name with spaces=[1, 2]", ",", "=", 'open="quote', "partway-1"]
)
def test_malformed_cookies_of_other_servers_are_ignored(explorer, foreign):
    door = guard.Door.at("0.0.0.0", 8000)
    own = f"{door.cookie}={door.token}"
    for cookies in (f"{foreign}; {own}", f"{own}; {foreign}", f"{door.cookie}=old; {own}"):
        headers = {"cookie": cookies}
        response = ask(explorer, "/api/run", door=door, host="192.168.0.7:8000", headers=headers)
        assert response.status_code == 200
    stale = {"cookie": f"{foreign}; {door.cookie}=guess"}
    assert ask(explorer, "/", door=door, host="192.168.0.7:8000", headers=stale).status_code == 401


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"x{n} = 1<<13999" for n in range(190)),
        "x = " + "'a' * 20_000_000",
        f"{','.join(f'a{n}' for n in range(1_200))}={'1,' * 1_200}\n" + "b=1\n" * 190,
        "raise ValueError('a' * 1_000_000)",
        "answer = '\ud800'",
    ],
    ids=["long numbers", "a long text", "many values", "a long message", "half a surrogate pair"],
)
def test_whatever_is_typed_the_answer_is_small(explorer, text):
    response = post(explorer, json.dumps({"key": "train/1", "text": text}))
    assert response.status_code == 200, response.text
    assert len(response.content) < 6_000_000


def test_two_doors_have_two_tokens_and_loopback_has_none():
    assert guard.Door.at("0.0.0.0", 1).token != guard.Door.at("0.0.0.0", 1).token
    assert all(
        guard.Door.at(host, 1).token is None for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")
    )
    assert guard.Door.at("::1", 7).address == "http://[::1]:7/"


def test_a_token_is_not_shown_by_accident():
    door = guard.Door.at("0.0.0.0", 1)
    assert door.token not in repr(door)


def test_text_of_any_kind_reaches_the_page_unchanged(tmp_path):
    writer = Writer(tmp_path, train=[Problem(text, text, text) for text in HOSTILE], dev=())
    explorer = Explorer(writer.run)
    response = ask(explorer, "/api/list")
    assert {row[3] for row in response.json()["rows"]} == set(HOSTILE)
    assert response.content.isascii()
    for number, text in enumerate(HOSTILE, 1):
        assert ask(explorer, "/api/problem", params={"key": f"train/{number}"}).json()["question"] == text


def test_the_page_never_makes_markup_of_text():
    script = "".join(file.read_text() for name, file in FILES.items() if name.endswith(".js"))
    script = script.replace('"http://www.w3.org/2000/svg"', "")  # a name, not an address
    ways = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|DOMParser|srcdoc|Fragment"
    )
    assert not re.findall(ways, script)
    assert not re.findall(r"https?://", script)
    page = FILES["index.html"].read_text()
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", page)
    assert not re.findall(r"<script>|<style|\son\w+=|\sstyle=", page)


def test_the_style_sheet_has_a_colour_for_every_hue():
    from runreports.trace_html import HUES

    styles = FILES["trace_html.css"].read_text()
    assert {int(n) for n in re.findall(r"^ +\.hue-(\d)", styles, re.MULTILINE)} == set(range(HUES))


def test_the_style_sheet_has_a_colour_for_every_verdict():
    styles = FILES["app.css"].read_text()
    assert set(re.findall(r"\.v-(\w+)", styles)) == set(Verdict)


def test_a_taken_port_is_an_error_with_a_way_out():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="is taken; choose another"):
            server.listening("127.0.0.1", taken.getsockname()[1])


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(ConfigError, match="not an address of this machine"):
        server.listening("192.0.2.1", 0)


def read_back(folder: Path, name: str):
    text = (folder / "data" / f"{name}.js").read_text(encoding="ascii")
    start, end = f'partwayData("{name}", ', ");\n"
    assert text.startswith(start)
    assert text.endswith(end)
    return json.loads(text[len(start) : -len(end)])


def test_a_static_copy_holds_the_list_and_every_problem(tmp_path, explorer):
    progress = []
    export.export(explorer, tmp_path / "copy", lambda done, total: progress.append((done, total)))
    copy = tmp_path / "copy"
    assert 'data-source="folder"' in (copy / "index.html").read_text()
    assert [row[2] for row in read_back(copy, "list")["rows"]] == ["wheels", "pens", "weak", "eggs", "cats"]
    shown = read_back(copy, "problems-0")
    assert shown["train/1"] == json.loads(json.dumps(explorer.problem("train/1")))
    assert read_back(copy, "run")["problems_per_file"] == 20
    assert progress[-1] == (5, 5)


def test_a_static_copy_replaces_an_earlier_one_but_nothing_else(tmp_path, explorer):
    copy = tmp_path / "copy"
    for _ in range(2):
        export.export(explorer, copy, lambda done, total: None)
    other = tmp_path / "photos"
    other.mkdir()
    (other / "cat.jpg").touch()
    with pytest.raises(ConfigError, match="something other than an exported page"):
        export.export(explorer, other, lambda done, total: None)
    assert (other / "cat.jpg").exists()
    with pytest.raises(ConfigError, match="something other than"):
        export.export(explorer, other / "cat.jpg", lambda done, total: None)
