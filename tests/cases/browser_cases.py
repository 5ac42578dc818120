"""What the browser tests share: the browser, a served explorer, hostile text, what a page must be like."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from explorer_cases import Writer

from partway.problem import Problem
from partway.runs import Run

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Page, Request

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage"),
]
WIDE, NARROW = {"width": 1360, "height": 900}, {"width": 390, "height": 844}
HOSTILE = [
    "<script>document.title = 'broken'</script>",
    '<img src=x onerror="document.title = 1">',
    "javascript:document.title=1",
    "safe \u202egnp.exe\u202c or not",
    "</h1></main><style>* { display: none }</style>",
]


@contextmanager
def served(*args: object) -> Iterator[str]:
    """The address of an explorer that runs meanwhile."""
    command = [sys.executable, "-m", "partway", "explore", *map(str, args), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def hostile_run(folder: Path) -> Path:
    """A run in which ids, questions, answers, steps and samples try to be more than text."""
    reference = f"s = {HOSTILE[1]!r}\nanswer = {HOSTILE[0]!r}"
    train = [Problem(text, text, HOSTILE[0], reference) for text in HOSTILE]
    writer = Writer(folder, train=train, dev=())
    samples = [f"answer = {text!r}\n" for text in HOSTILE] + [f"answer = '{text}\n" for text in HOSTILE]
    writer.sample([(1, HOSTILE[0], "", text, -1.0) for text in samples])
    writer.save("final")
    broken = {"id": "half", "question": "the answer is half a pair", "answer": "\udfff"}
    with (folder / "problems" / "train.jsonl").open("a") as file:
        file.write(json.dumps(broken) + "\n")
    return folder


def watch(page: Page, address: str, errors: list[str]) -> None:
    """Note what a page logs as wrong and every request that goes elsewhere than to `address`."""
    home = re.findall(r"^http://[^/]+/|^file://", address)[0]

    def on_request(request: Request) -> None:
        if not request.url.startswith((home, "data:")):
            errors.append(f"a request left the machine: {request.url}")

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            errors.append(message.text)

    page.on("request", on_request)
    page.on("console", on_console)
    page.on("pageerror", lambda error: errors.append(f"a script failed: {error}"))


def take(page: Page, path: Path) -> bytes:
    picture = page.screenshot(path=path, animations="disabled")
    assert len(picture) > 10_000, f"{path} is nearly empty"
    return picture


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.id || document.activeElement.tagName"))


def assert_accessible(page: Page) -> None:
    """No violation that axe-core finds, where it is installed."""
    if find_spec("axe_playwright_python") is None:
        return
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == []


def assert_fits(page: Page) -> None:
    wide, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window, f"{wide} pixels in a window of {window}"


def sizes(directory: Path) -> dict[str, int]:
    return {split: len(Run(directory).problems(split)) for split in ("train", "dev")}


def go(page: Page, query: str) -> None:
    """Change what is looked for, and wait for the list."""
    from playwright.sync_api import expect

    change = "query => new Promise(done => { addEventListener('hashchange', done); location.hash = query })"
    page.evaluate(change, query)
    expect(page.locator("#entries")).not_to_have_attribute("aria-busy", "true")


def open_only(page: Page, text: str) -> None:
    """Search, and open the only problem found."""
    from playwright.sync_api import expect

    page.fill("#text", text)
    expect(page.locator("#total")).to_have_text("1 problem")
    page.click("#entries a")
    page.wait_for_selector("#solutions")
