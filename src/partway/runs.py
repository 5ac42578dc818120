"""The run directory: written while training, read by every report, page, resume and audit.

`docs/run_directory.md` describes each file key by key. Files that grow are only ever appended to, so a
checkpoint remembers their lengths, and resuming cuts what was written after it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

import yaml

from partway.buffer import Rules, SolutionBuffer, Verdict
from partway.datasets.rows import problem_line, problem_of
from partway.errors import RunError
from partway.evaluation import Evaluation
from partway.execution import Programs
from partway.execution.programs import programs_of
from partway.files import atomic_writer
from partway.problem import Problem

Row = dict[str, Any]

STEPS_PER_SAMPLE_FILE = 1000


@dataclass(frozen=True, slots=True)
class SelfSample:
    """A self-sample: `count` equal completions of one problem, drawn in one step, with one verdict."""

    step: int
    problem: str
    prefix: str
    completion: str
    count: int
    finished: bool
    verdict: Verdict
    log_prob: float | None = None


@dataclass(frozen=True)
class Run:
    """A run directory. Reading needs nothing but the files; writing is for one process only."""

    directory: Path

    @classmethod
    def at(cls, directory: str | os.PathLike[str]) -> Run:
        """The run in `directory`, which must hold one."""
        run = cls(Path(directory))
        if not run.is_started:
            raise RunError(
                f"{directory}: no run here (config.yaml is missing); expected an output_dir of partway train"
            )
        return run

    @property
    def is_started(self) -> bool:
        """Whether training was ever begun here."""
        return (self.directory / "config.yaml").is_file()

    @property
    def is_finished(self) -> bool:
        """Whether training came to its end."""
        return (self.directory / "final").is_dir()

    def write_config(self, settings: Mapping[str, Any]) -> None:
        """Save the resolved settings."""
        with self._writing("config.yaml") as stream:
            yaml.safe_dump(dict(settings), stream, sort_keys=False, allow_unicode=True)

    @property
    def config(self) -> Row:
        """The resolved settings."""
        text = (self.directory / "config.yaml").read_text(encoding="utf-8")
        settings: Row = yaml.safe_load(text) or {}
        return settings

    @cached_property
    def programs(self) -> Programs:
        """The language of the solutions and what is right in it."""
        return programs_of(self.config if self.is_started else {})

    def write_environment(self, environment: Mapping[str, Any]) -> None:
        """Save versions, seed and fingerprints."""
        with self._writing("environment.json") as stream:
            json.dump(environment, stream, indent=2, ensure_ascii=False)

    @property
    def environment(self) -> Row:
        """Versions, seed and fingerprints."""
        return read_json(self.directory / "environment.json")

    def write_problems(self, split: str, problems: Sequence[Problem]) -> None:
        """Save the problems of `split` (train or dev) as they are used."""
        with atomic_writer(self.problems_file(split)) as stream:
            stream.writelines(map(problem_line, problems))

    def problems(self, split: str = "train") -> list[Problem]:
        """The problems of `split`, none if the run has none."""
        rows = read_rows(self.problems_file(split))
        return [problem_of(row, self.programs.parse) for row in rows]

    def problems_file(self, split: str) -> Path:
        """Where the problems of `split` are, if there are any."""
        return self.directory / "problems" / f"{split}.jsonl"

    @cached_property
    def rules(self) -> Rules:
        """What the buffers keep; settings that are not there have defaults."""
        config = self.config if self.is_started else {}
        return Rules(
            config.get("dedup", "ast"),
            config.get("length_tolerance", 0),
            config.get("self_sampling", "fcs+pcs") == "fcs+pcs",
            config.get("max_solutions_per_problem"),
        )

    def append_metrics(self, metrics: Mapping[str, Any], timings: Mapping[str, Any]) -> None:
        """Add a line to metrics.jsonl and its companion to timings.jsonl."""
        self._append("metrics.jsonl", [metrics])
        self._append("timings.jsonl", [timings])

    def append_samples(self, samples: Sequence[SelfSample]) -> None:
        """Add self-samples, in the order of their steps."""
        for first, group in groupby(samples, key=_first_step_of_file):
            self._append(f"samples/{first:08d}.jsonl", (asdict(sample) for sample in group))

    def metrics(self) -> list[Row]:
        """The lines of metrics.jsonl."""
        return list(read_rows(self.directory / "metrics.jsonl"))

    def timings(self) -> list[Row]:
        """The lines of timings.jsonl."""
        return list(read_rows(self.directory / "timings.jsonl"))

    def samples(self) -> Iterator[SelfSample]:
        """Every self-sample, in the order drawn."""
        for path in sorted((self.directory / "samples").glob("*.jsonl")):
            for row in read_rows(path):
                yield SelfSample(**{**row, "verdict": Verdict(row["verdict"])})

    def write_evaluation(self, step: int, evaluation: Evaluation) -> None:
        """Save an evaluation: its samples, then its summary."""
        path = self.directory / "evaluations" / f"step-{step}.json"
        evaluation.write(path, expand=False, about={"step": step})

    def evaluations(self) -> dict[int, Row]:
        """The summaries by step."""
        return {
            step: read_json(path) for step, path in numbered(self.directory / "evaluations", "step-*.json")
        }

    def evaluation_rows(self, step: int) -> Iterator[Row]:
        """The samples of the evaluation at `step`."""
        return read_rows(self.directory / "evaluations" / f"step-{step}.jsonl")

    def checkpoints(self) -> dict[int, Path]:
        """Checkpoint directories by step; each was complete when it got its name."""
        return dict(numbered(self.directory, "checkpoint-*"))

    def buffers(self, directory: Path | None = None) -> dict[str, SolutionBuffer]:
        """The buffers by problem id, from a checkpoint, else as they were at the end or last saved."""
        directory = directory or self._newest_model_directory()
        rows = {row["id"]: row for row in read_rows(directory / "buffer.jsonl")}
        problems, programs = self.problems(), self.programs
        return {p.id: SolutionBuffer.from_json(p, rows[p.id], programs) for p in problems if p.id in rows}

    def _newest_model_directory(self) -> Path:
        if self.is_finished:
            return self.directory / "final"
        if not (checkpoints := self.checkpoints()):
            raise RunError(
                f"{self.directory}: no checkpoint was written yet; the buffers come with the first"
            )
        return checkpoints[max(checkpoints)]

    def positions(self) -> dict[str, int]:
        """How long each growing file is, once all of it is on disk."""
        return {self._name(path): synced_size(path) for path in self._growing()}

    def cut(self, step: int, positions: Mapping[str, int]) -> None:
        """Forget everything after `step`, when the growing files had the lengths `positions`."""
        for name, length in positions.items():
            path = self.directory / name
            if not path.is_file() or path.stat().st_size < length:
                raise RunError(
                    f"{path}: shorter than when checkpoint-{step} was written; it was changed since"
                )
        for path in self._growing():
            if (name := self._name(path)) in positions:
                os.truncate(path, positions[name])
            else:
                path.unlink()
        for pattern in ("step-*.json", "step-*.jsonl", "step-*.pass1.jsonl"):
            for number, path in numbered(self.directory / "evaluations", pattern):
                if number > step:
                    path.unlink()

    def _growing(self) -> list[Path]:
        files = [self.directory / "metrics.jsonl", self.directory / "timings.jsonl"]
        return [path for path in files if path.exists()] + sorted(
            (self.directory / "samples").glob("*.jsonl")
        )

    def _name(self, path: Path) -> str:
        return path.relative_to(self.directory).as_posix()

    def _append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write("".join(json_line(row) for row in rows))

    def _writing(self, name: str) -> AbstractContextManager[TextIO]:
        return atomic_writer(self.directory / name)


def _first_step_of_file(sample: SelfSample) -> int:
    return (sample.step - 1) // STEPS_PER_SAMPLE_FILE * STEPS_PER_SAMPLE_FILE + 1


def programs_for(model: str | None, overrides: Mapping[str, Any]) -> Programs:
    """The programs a model writes: those of its run if it names one, with what `overrides` say on top."""
    run = None if model is None else Run(Path(model))
    config = run.config if run is not None and run.is_started else {}
    return programs_of(config | {key: value for key, value in overrides.items() if value is not None})


def json_line(row: Mapping[str, Any]) -> str:
    """`row` as one line of JSON; numbers that JSON cannot write become null."""
    finite = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }
    return json.dumps(finite, ensure_ascii=False, default=str) + "\n"


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a JSONL file, none if there is no such file; a last line without its end is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="\n") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith("\n"):  # being written just now
                return
            try:
                yield json.loads(line)
            except ValueError as error:
                raise RunError(f"{path}, line {number}: not JSON ({error})") from None


def read_json(path: Path) -> Row:
    """The object in a JSON file."""
    try:
        content: Row = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: cannot be read ({error})") from None
    return content


def numbered(directory: Path, pattern: str) -> list[tuple[int, Path]]:
    """Entries of `directory` like `pattern` by the number in place of its asterisk, in order."""
    shape = re.compile(re.escape(pattern).replace(r"\*", r"(\d+)"))
    matches = ((shape.fullmatch(path.name), path) for path in directory.glob(pattern))
    return sorted((int(match[1]), path) for match, path in matches if match)


def synced_size(path: Path) -> int:
    """The size of a file after everything written to it has reached the disk."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())
        return os.fstat(stream.fileno()).st_size
