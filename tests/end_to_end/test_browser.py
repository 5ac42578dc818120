"""Explorer and report in a real browser, as a person uses them: by mouse, by keyboard, on a phone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser_cases import (
    CHROMIUM,
    HOSTILE,
    NARROW,
    OPTIONS,
    WIDE,
    assert_accessible,
    assert_fits,
    focused,
    go,
    hostile_run,
    open_only,
    served,
    sizes,
    take,
    watch,
)
from explorer_cases import Writer, finished_run

from partway.runs import Run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; try make test-browser")
expect = api.expect
expect.set_options(timeout=60_000)

Opener = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium found; try make test-browser")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield launched
        launched.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Opener]:
    """Opens addresses in fresh windows; at the end no error was logged and nothing left the machine."""
    errors: list[str] = []
    contexts = []

    def opened(address: str, *, size: dict[str, int] = WIDE, dark: bool = False) -> Page:
        context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light")
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        watch(page, address, errors)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two real runs of a tiny model on the same problems."""
    from training_cases import small_trainer

    folder = tmp_path_factory.mktemp("runs")
    for name, seed in (("run", 0), ("other", 1)):
        small_trainer(folder / name, seed=seed).train()
    return folder / "run", folder / "other"


@pytest.fixture(scope="module")
def address(trained: tuple[Path, Path]) -> Iterator[str]:
    """The explorer of the two real runs."""
    with served(*trained) as found:
        yield found


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The explorer of a run whose every solution is known beforehand."""
    with served(finished_run(tmp_path_factory.mktemp("runs") / "scripted").directory) as found:
        yield found


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: PARTWAY_SCREENSHOTS if set, for those who want to look at them."""
    folder = Path(os.environ.get("PARTWAY_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_accessibility_is_checked():
    pytest.importorskip("axe_playwright_python", reason="no axe-core, nothing checked; try make test-browser")


def test_searching_and_opening_a_problem_shows_its_solutions_side_by_side(visit, address, trained):
    page = visit(address)
    page.wait_for_selector("#entries a")
    assert page.inner_text("#total") == f"{sum(sizes(trained[0]).values())} problems"
    found = max(Run(trained[0]).buffers().items(), key=lambda item: len(item[1]))[0]
    page.fill("#text", found)
    expect(page.locator("#entries .id").first).to_have_text(found)
    page.click("#entries a >> nth=0")
    page.wait_for_selector("#solutions .card")
    assert "Tom has" in page.inner_text("h1")
    left, right = (page.locator(".card").nth(n).bounding_box() for n in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] < right["x"]
    assert "reference" in page.inner_text(".card >> nth=0")


def test_states_steps_and_deviations_are_those_of_the_run(visit, scripted):
    page = visit(scripted)
    open_only(page, "wheels")
    assert page.locator("#solutions .card").count() == 3
    swapped = page.locator("#solution-1")
    assert swapped.locator("tr.deviates td.step").inner_text() == "t0 = n1 * n0"
    assert "found at step 1" in swapped.inner_text()
    assert "drawn 2 times" in swapped.inner_text()
    assert "probability 61%" in swapped.inner_text()
    partial = page.locator("#solution-2")
    assert partial.locator("tr.dropped td.step").all_inner_texts() == ["t0 = n0 * n1", "answer = t0 - n1"]
    second = [page.locator(f"#solution-{card} tbody tr:nth-child(2) .state") for card in range(3)]
    assert {state.get_attribute("class") for state in second} == {"state hue-1"}
    assert {state.locator(".letter").text_content() for state in second} == {"state B"}
    assert page.locator("#tree .leaf").all_inner_texts() == ["y*", "ŷ1", "ŷ2"]


def test_pointing_at_a_state_shows_where_else_it_is_reached(visit, scripted):
    page = visit(scripted + "#open=train/1")
    page.wait_for_selector("#solutions .card")
    page.hover("#solution-2 tbody tr:nth-child(2) .state")
    assert page.locator("#solutions .state.is-lit").count() == 3
    page.hover("h1")
    assert page.locator(".state.is-lit").count() == 0


def test_a_typed_program_gets_its_trace_verdict_and_longest_matching_prefix(visit, scripted):
    page = visit(scripted + "#open=train/1")
    page.fill("#typed", "n0 = 10\nn2 = 5\nn1 = 2\nanswer = n0 - n1")
    page.wait_for_selector("#typed-result .verdict")
    assert page.inner_text("#typed-result .verdict") == "new partially correct"
    assert "Longest matching prefix: 3 steps, reaching state C" in page.inner_text("#typed-result")
    page.fill("#typed", "answer = 25")
    page.wait_for_selector("text=new fully correct >> visible=true")
    page.fill("#typed", "answer = 1 / 0")
    page.wait_for_selector("#typed-result >> text=ZeroDivisionError")
    page.click("#solution-1 >> text=Edit a copy")
    page.wait_for_selector("#typed-result >> text=This is ŷ1")


def test_everything_can_be_done_from_the_keyboard(visit, scripted):
    page = visit(scripted)
    page.wait_for_selector("#entries a")
    page.keyboard.press("/")
    assert focused(page) == "text"
    page.keyboard.type("n")
    expect(page.locator("#entries a")).to_have_count(4)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("document.activeElement.dataset.key")
    page.keyboard.press("Enter")
    page.wait_for_selector("#solutions")
    expect(page.locator("h1")).to_be_focused()
    assert page.locator("[aria-current]").get_attribute("data-key") == chosen
    page.keyboard.press("t")
    assert focused(page) == "typed"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.key") == chosen
    page.keyboard.press("j")
    page.keyboard.press("/")
    expect(page.locator("[aria-current]")).not_to_have_attribute("data-key", chosen)
    expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
    assert focused(page) == "text"
    page.keyboard.press("Escape")
    expect(page.locator("#entries a")).to_have_count(5)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()


def test_tab_walks_from_the_search_through_the_list_to_the_problem(visit, scripted):
    page = visit(scripted + "#open=train/1")
    page.wait_for_selector("#solutions")
    page.focus("#text")
    passed = []
    for _ in range(14):
        page.keyboard.press("Tab")
        passed.append(page.evaluate("document.activeElement.closest('form, ol, main')?.id"))
    assert list(dict.fromkeys(passed)) == ["query", "entries", "main"]
    assert passed.count("entries") == 1


def test_filters_are_in_the_address_and_back_goes_back(visit, address, trained):
    size = sizes(trained[0])
    page = visit(address)
    page.wait_for_selector("#entries a")
    page.select_option("[name=split]", "dev")
    expect(page.locator("#entries a")).to_have_count(size["dev"])
    assert "split=dev" in page.url
    page.click("#entries a >> nth=0")
    page.wait_for_selector("#evaluation")
    page.go_back()
    page.wait_for_selector(".facts-grid")
    page.reload()
    expect(page.locator("#entries a")).to_have_count(size["dev"])
    page.click("text=Clear all")
    expect(page.locator("#entries a")).to_have_count(sum(size.values()))


def test_evaluation_samples_are_grouped_with_counts_and_verdicts(visit, scripted):
    page = visit(scripted + "#open=dev/1")
    groups = page.locator("#evaluation .groups > li")
    groups.first.wait_for()
    assert groups.count() == 2
    above, below = (page.locator(place).bounding_box()["y"] for place in ("#evaluation", "#try"))
    assert above < below, "what the model wrote comes before what a reader may type"
    assert groups.first.locator(".count").inner_text() == "5×"
    assert "✓ right" in groups.first.inner_text()
    groups.nth(1).locator("summary").click()
    expect(groups.nth(1)).to_contain_text("Right up to step 1: state A, step 1 of y*")


def test_a_run_in_progress_offers_its_news(visit, tmp_path):
    writer = Writer(tmp_path / "run")
    with served(tmp_path / "run") as address:
        page = visit(address)
        page.clock.install()
        page.reload()
        page.wait_for_selector("#entries a")
        assert "in training, step 0 of 100" in page.inner_text("#run-progress")
        writer.sample()
        page.clock.fast_forward(11_000)
        page.click("#news")
        page.wait_for_selector("#entries >> text=2 FCS + 1 PCS")
        assert "step 4 of 100" in page.inner_text("#run-progress")


def test_hostile_text_stays_text(visit, tmp_path):
    with served(hostile_run(tmp_path / "run")) as address:
        page = visit(address)
        page.wait_for_selector("#entries a")
        assert page.locator("#entries a").count() == len(HOSTILE) + 1
        for place in range(len(HOSTILE) + 1):
            page.click(f"#entries a >> nth={place}")
            expect(page.locator("#entries a").nth(place)).to_have_attribute("aria-current", "true")
            expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
            for summary in page.locator("#samples summary").all():
                summary.click()
        page.click("#entries a >> nth=0")
        page.wait_for_selector("#samples")
        assert page.inner_text("h1") == HOSTILE[0]
        assert "U+202E" in page.inner_text("#samples")
        page.fill("#typed", HOSTILE[0] + "\nanswer = '" + HOSTILE[3] + "'")
        page.wait_for_selector("#typed-result .verdict")
        assert page.title() == "run · partway explorer"
        strange = "img, svg, iframe, style, script:not([src]), [onerror], [href^='javascript']"
        assert page.locator(f"body >> css={strange}").count() == 0


def test_a_static_copy_works_from_its_folder_and_finds_the_same(visit, trained, address, tmp_path):
    command = [sys.executable, "-m", "partway", "-q", "explore", *trained, "--export", tmp_path / "copy"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
    copy, server = visit(f"file://{tmp_path}/copy/index.html"), visit(address)
    queries = [
        *("text=buys+apples", "text=%22how+many%22&order=solutions", "least=3", "most=2", "partial=yes"),
        *("partial=no", "evaluation=solved", "evaluation=unsolved", "compared=gained", "compared=lost"),
        *("compared=more", "order=hardest", "order=easiest", "order=found&split=train", "text=nowhere"),
    ]
    for query in queries:
        found = []
        for page in (copy, server):
            go(page, query)
            found.append([page.inner_text("#total"), *page.locator("#entries a").all_inner_texts()])
        assert found[0] == found[1], query
    copy.fill("#text", "apples")
    expect(copy.locator("#total")).not_to_have_text("No problem fits. Change the words or clear the filters.")
    copy.click("#entries a >> nth=0")
    copy.wait_for_selector("#solutions .card")
    assert copy.locator("#typed").count() == 0
    assert "a static copy" in copy.inner_text("#run-progress")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_explorer_is_accessible_and_has_its_picture_taken(visit, address, pictures, dark):
    name = "dark" if dark else "light"
    page = visit(address, dark=dark)
    page.wait_for_selector("#entries a")
    assert_accessible(page)
    take(page, pictures / f"explorer-{name}-run.png")
    go(page, "order=solutions")
    page.click("#entries a >> nth=0")
    page.wait_for_selector("#samples summary")
    page.fill("#typed", "n0 = 1\nanswer = n0 / 0")
    page.wait_for_selector("#typed-result .verdict")
    page.locator("#samples summary").first.click()
    assert_accessible(page)
    page.locator("main").evaluate("main => { main.scrollTop = 0 }")
    take(page, pictures / f"explorer-{name}-problem.png")
    assert_fits(page)


def test_on_a_phone_list_and_problem_take_turns(visit, address, pictures):
    page = visit(address, size=NARROW)
    page.wait_for_selector("#entries a")
    assert_fits(page)
    overview, problems = (page.locator(one).bounding_box() for one in (".facts-grid", "nav.list"))
    assert overview["y"] < problems["y"]
    take(page, pictures / "explorer-narrow-overview.png")
    page.click("text=Problems ↓")
    expect(page.locator("#text")).to_be_in_viewport()
    page.click("#entries a >> nth=2")
    page.wait_for_selector("#solutions")
    assert not page.locator("nav.list").is_visible()
    assert_fits(page)
    assert_accessible(page)
    take(page, pictures / "explorer-narrow-problem.png")
    page.click("text=← Problems")
    assert page.locator("nav.list").is_visible()


@pytest.fixture(scope="module")
def report(trained: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    reports = pytest.importorskip("runreports", reason="there are no reports")
    pytest.importorskip("matplotlib", reason="the extra 'plots' is not installed")
    return f"file://{reports.write_report(list(trained), tmp_path_factory.mktemp('report'))}"


@pytest.mark.parametrize(
    ("name", "size", "dark"), [("light", WIDE, False), ("dark", WIDE, True), ("narrow", NARROW, False)]
)
def test_the_report_opens_without_a_network_and_is_accessible(visit, report, pictures, name, size, dark):
    page = visit(report, size=size, dark=dark)
    page.wait_for_selector("svg")
    assert "pass@" in page.inner_text("body")
    assert_fits(page)
    assert_accessible(page)
    take(page, pictures / f"report-{name}.png")
