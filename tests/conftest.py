"""What all tests share: where the real data is, if it is anywhere, and how the costly ones are run."""

import gc
import logging
import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).parent.parent
WITHOUT = os.environ.get("PARTWAY_WITHOUT", "")
MISSING = rf"not here: .*\b{WITHOUT}\b|no module (partway\.)?{WITHOUT}\b"
PROCESSES = {"end_to_end", "benchmarks", "test_docs.py"}
PROCESSES |= {"test_pool.py", "test_walls.py", "test_takeover.py", "test_doctor.py", "sql"}
PROCESSES |= {"test_judging.py", "test_slow_programs.py", "test_http_engine.py"}
CLOCKS = PROCESSES | {
    "runexplorer",
    "modelservers",
    "stepbox",
    "tracking",
}  # who races other programs, and may lose once
MODELS = {"test_drafts.py", "test_layouts.py", "test_scoring.py", "test_sampling_tree.py", "test_prompts.py"}
MODELS |= {"test_stateful_models.py", "test_shared_prompts.py", "test_loading.py", "test_model_settings.py"}
TRAINERS = {"SelfSamplingTrainer", "small_trainer", "watched_trainer"}  # who imports these trains models

# Tests run side by side, one process to a core; before torch is imported, and for the processes they start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Some virtual machines announce matrix instructions (AMX) that their host then refuses: bfloat16 would crash.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

hypothesis.settings.register_profile("partway", deadline=None)  # no property is stopped for being slow
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)  # for --hypothesis-profile
hypothesis.settings.register_profile("twice", deadline=None, max_examples=2)
hypothesis.settings.load_profile("partway")


def pytest_configure() -> None:
    """Do not wait for the disk: no test pulls the plug."""
    os.fsync = lambda descriptor: None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts programs of its own and what computes with models, and begin with what takes long."""
    for item in items:
        parts = set(item.path.relative_to(ROOT).parts)  # whatever the folder of the repository is called
        if PROCESSES & parts:
            item.add_marker(pytest.mark.processes)
        if CLOCKS & parts:
            item.add_marker(pytest.mark.flaky(reruns=1))  # the summary names those that needed it
        imported = set(vars(item.module)) if isinstance(item, pytest.Function) else set()
        if item.path.name in MODELS or TRAINERS & imported:
            item.add_marker(pytest.mark.models)
    costs = {item.path: 0 for item in items}
    for item in items:
        costs[item.path] = max(costs[item.path], cost(item))
    items.sort(key=lambda item: -costs[item.path])  # stable: a file's tests stay together, in their order


def cost(item: pytest.Item) -> int:
    """Long files first, since a worker takes whole files: then all workers end at about the same time."""
    marks = {mark.name for mark in item.iter_markers()}
    return 2 if "processes" in marks else 1 if marks & {"models", "slow", "volume"} else 0


def pytest_collection_finish() -> None:
    """What was imported stays: garbage collections, one in every training, need not look at it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run tests of volume, their fixtures included, without the tracer, which would double their time."""
    tracer = None
    if item.get_closest_marker("volume"):
        coverage = pytest.importorskip("coverage")
        tracer = coverage.Coverage.current()
    if tracer is None:
        return (yield)
    tracer.stop()
    try:
        return (yield)
    finally:
        tracer.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Where a folder was taken away (tests/cases/removable.py), what says that it needs it is skipped."""
    report = yield
    if WITHOUT and report.failed and re.search(MISSING, str(report.longrepr)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: it needs {WITHOUT}, which was taken away")
    return report


@pytest.fixture(scope="session", autouse=True)
def known_models() -> Iterator[None]:
    """The tiny model of most tests is checked once, not at the start of every run; a third of their time."""
    if "training_cases" not in sys.modules:  # nothing trains
        yield
        return
    from known_models import remembered

    from partway.learning import scoring
    from partway.sampling import local_engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "checked_layout", remembered(scoring.checked_layout))
        patch.setattr(local_engine, "checked_sampler", remembered(local_engine.checked_sampler))
        yield


@pytest.fixture(autouse=True)
def remarks_are_heard() -> None:
    """A command called with --quiet sets the level of this logger for all that follows in the process."""
    logging.getLogger("partway").setLevel(logging.NOTSET)


@pytest.fixture
def no_collecting() -> Iterator[None]:
    """No garbage collection: what one costs depends on all that other tests left in this process."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    from report_cases import leave_unpainted

    leave_unpainted(monkeypatch)


@pytest.fixture
def no_pngs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn as SVG only, which is what a page shows: painting takes longer."""
    monkeypatch.setattr("runreports.writing._save_png", lambda figure, path: path.touch())


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("PARTWAY_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set PARTWAY_DATA to its folder")
    return folder
