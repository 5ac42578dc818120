"""Damage the files of a run, one place at a time, and read it with everything that reads runs.

    python tests/broken_runs.py [--mutants 2000] [--seed 0]

Whatever a file holds, a reader copes with it or raises one of partway's own errors: one line, and soon.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from partway.cli import app
from partway.errors import PartwayError
from partway.evaluation.results import read_results
from partway.reports.explorer.explorer import Explorer
from partway.reports.report import read_study, write_study
from partway.runs import Run
from partway.runs.checkpoints import RunProgress, last_good
from partway.training.config import SelfSamplingConfig
from partway.training.replay import Recording
from partway.training.resuming import check_same_run
from report_cases import leave_unpainted

WHOLE = Path(__file__).parent / "runs" / "finished-0.1"
NESTED: Any = json.loads("[" * 300 + "]" * 300)
STRANGE: tuple[Any, ...] = (
    *(None, True, 0, -1, 3, 10**30, 10**400, 0.5, -1e300, float("nan"), float("inf")),
    *("", "x", "\ud800", "a\0b", "x" * 3000, "nan", "10", "\x1b[2J", "answer = (", "1" * 5000, "f(" * 200),
    *([], {}, [[]], [None], [1, 2], ["x"], [{}], {"x": 1}, {"kind": "fully_correct"}, [["x"]], NESTED),
)
DEEP = "[" * 100_000
MOST_SECONDS = 10.0  # a report takes one or two


@dataclass(frozen=True)
class Damage:
    """What was done to which file."""

    file: Path
    what: str


def damage(directory: Path, rng: random.Random) -> Damage:
    """Change one place in one file of a run."""
    files = sorted(path for path in directory.rglob("*") if path.suffix in (".json", ".jsonl", ".yaml"))
    file = rng.choice(files)
    rewrite = rng.choices((_in_a_value, _in_the_text), (5, 1))[0]
    return Damage(file.relative_to(directory), rewrite(file, rng))


def _in_the_text(file: Path, rng: random.Random) -> str:
    data = file.read_bytes()
    place = rng.randrange(len(data) + 1)
    put = rng.choice(
        (b"", DEEP.encode(), b"\xff", b"\0", b"\n", b"\n\n", b"{", b"}", b"[]\n", b'"', b"9" * 5000)
    )
    behind = data[place + rng.choice((0, 1, 9)) :] if rng.random() < 0.7 else b""
    file.write_bytes(data[:place] + put + behind)
    return f"{put[:20]!r} at byte {place}, {len(behind)} behind"


def _in_a_value(file: Path, rng: random.Random) -> str:
    """Another value, a missing one or one more, at any depth of the file's JSON or YAML."""
    if file.suffix == ".jsonl":
        lines = file.read_text(encoding="utf-8").splitlines()
        number = rng.randrange(len(lines))
        lines[number], what = _changed(lines[number], rng, json.loads, json.dumps)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return f"line {number + 1}: {what}"
    load, dump = (yaml.safe_load, yaml.safe_dump) if file.suffix == ".yaml" else (json.loads, json.dumps)
    text, what = _changed(file.read_text(encoding="utf-8"), rng, load, dump)
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    return what


def _changed(
    text: str, rng: random.Random, load: Callable[[str], Any], dump: Callable[[Any], str]
) -> tuple[str, str]:
    content = load(text)
    places = list(_places(content))
    put = rng.choice(STRANGE)
    if not places or rng.random() < 0.05:
        return dump(put), f"the whole is {_short(put)}"
    holder, key = rng.choice(places)
    if rng.random() < 0.25:
        del holder[key]
        return dump(content), f"{key!r} is gone"
    holder[key] = put
    return dump(content), f"{key!r} is {_short(put)}"


def _places(content: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [content]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys if isinstance(holder[key], (dict, list))]
    return found


def _short(value: object) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**100 else "a long integer"
    return text if len(text) <= 40 else f"{text[:37]}..."


# Readers.


def report(directory: Path) -> None:
    study = read_study([directory])
    write_study(study, directory / "report")


def explore(directory: Path) -> None:
    explorer = Explorer(Run.at(directory))
    explorer.check()
    json.dumps(explorer.facts())
    for entry in explorer.index.entries:
        json.dumps(explorer.problem(entry.key))


def command(*words: str) -> Callable[[Path], None]:
    """A command line, with RUN standing for the directory."""

    def read(directory: Path) -> None:
        ended = CliRunner().invoke(app, [word.replace("RUN", str(directory)) for word in words])
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception

    return read


def replay(directory: Path) -> None:
    run = Run.at(directory)
    recording = Recording(run, run.programs)
    problems = {problem.id: problem for problem in run.problems()}
    for step in range(1, 5):
        for problem in problems.values():
            with contextlib.suppress(PartwayError):  # not every problem is drawn in every step
                recording.drawn(step, [problem])
        recording.results(step)


def resume(directory: Path) -> None:
    run = Run.at(directory)
    settings = SelfSamplingConfig(**Run(WHOLE).config).settings
    check_same_run(run, settings, Run(WHOLE).environment)
    checkpoint, _ = last_good(run)
    for path in run.checkpoints().values():
        progress = RunProgress.read(path)
        run.buffers(path)
    if checkpoint is not None:
        run.cut(progress.step, progress.files)


def evaluations(directory: Path) -> None:
    for name in ("step-2", "step-4", "test"):
        read_results(Run(directory).evaluation_file(name))


READERS: Mapping[str, Callable[[Path], None]] = {
    "report": report,
    "explore": explore,
    "browse": command("browse", "RUN", "--states", "1"),
    "buffer": command("buffer", "RUN"),
    "buffer --json": command("buffer", "RUN", "--json"),
    "buffer --audit": command("buffer", "RUN", "--audit"),
    "buffer --export": command("buffer", "RUN", "--export", "RUN/out.jsonl"),
    "buffer --for dpo": command("buffer", "RUN", "--export", "RUN/out.jsonl", "--for", "dpo"),
    "buffer --import": command("buffer", "RUN/../imported", "--import", "RUN"),
    "evaluate": command("evaluate", "RUN", "--problems", "RUN/problems/dev.jsonl", "--samples", "2"),
    "compare": command("evaluate", "--compare", "RUN/evaluations/test.json", "RUN/evaluations/test.json"),
    "evaluations": evaluations,
    "replay": replay,
    "resume": resume,
}


def outcome(directory: Path, name: str) -> Exception | None:
    """What a reader raised over a copy of a run, for some of them write."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        copy = Path(shutil.copytree(directory, Path(scratch) / "run"))
        try:
            READERS[name](copy)
        except Exception as error:
            return error
    return None


@dataclass(frozen=True)
class Broken:
    """A reader that did not cope with a damaged run."""

    reader: str
    damage: Damage
    error: str


def run(mutants: int, seed: int, readers_each: int = 3) -> tuple[Counter[str], list[Broken]]:
    """What a few readers, taken by lot, made of so many damaged runs."""
    outcomes: Counter[str] = Counter()
    broken = []
    for number in range(mutants):
        rng = random.Random(f"{seed}/{number}")
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(shutil.copytree(WHOLE, Path(scratch) / "whole"))
            done = damage(directory, rng)
            for name in rng.sample(sorted(READERS), readers_each):
                started = time.process_time()
                error = outcome(directory, name)
                seconds = time.process_time() - started
                outcomes[type(error).__name__] += 1
                if not is_fine(error) or seconds > MOST_SECONDS:
                    where = "".join(traceback.format_exception(error)[-3:]) if error else ""
                    broken.append(Broken(name, done, f"{where} after {seconds:.1f} s"))
    return outcomes, broken


def is_fine(error: Exception | None) -> bool:
    """Whether a reader coped, or said in one line of partway's own why not."""
    return error is None or (isinstance(error, PartwayError) and "\n" not in str(error).strip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Read damaged runs.")
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    leave_unpainted(pytest.MonkeyPatch())
    seen, failures = run(options.mutants, options.seed)
    for failure in failures:
        print(failure.reader, failure.damage, failure.error, sep="\n", end="\n\n")
    print(dict(seen), f"{len(failures)} failures")
    sys.exit(bool(failures))
