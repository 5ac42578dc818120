"""The parts of a run directory that the explorer needs, each found by problem and read again when it changes.

Files of any length are walked once; what is remembered of them is where each problem's rows begin and a few
counts. A run that is still training is read as far as it is written.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from partway.buffer import SolutionBuffer, seed_buffers
from partway.datasets.rows import problem_of
from partway.problem import Problem
from partway.reports.explorer.rows import Stamp, row_at, scan, stamp
from partway.reports.explorer.self_samples import SelfSamples, sampled_text
from partway.reports.explorer.tracing import traced
from partway.runs import Row, Run, read_json

SPLITS = ("train", "dev")
T = TypeVar("T")


class Listed(NamedTuple):
    """A problem as a file lists it: `number` is its line, counted from 1."""

    split: str
    number: int
    id: str
    question: str
    has_reference: bool
    start: int


class Counts(NamedTuple):
    """What is kept for a problem: how many solutions of each kind, and when the latest was found."""

    fully_correct: int
    partially_correct: int
    last_found: int


class Score(NamedTuple):
    """How many samples an evaluation drew of a problem, and how many of them were right."""

    drawn: int
    passed: int


@dataclass(frozen=True)
class SavedBuffers:
    """A buffer.jsonl, if one was saved yet: where each problem's row begins and what it counts."""

    path: Path | None
    starts: Mapping[str, int]
    counts: Mapping[str, Counts]

    @property
    def step(self) -> int | None:
        """The step it was saved at, None for that of the end, after which nothing is found."""
        if self.path is None:
            return 0
        folder = self.path.parent.name
        return None if folder == "final" else int(folder.removeprefix("checkpoint-"))


@dataclass(frozen=True)
class Judged:
    """The samples of an evaluation: where each problem's rows begin, and its score."""

    path: Path
    starts: Mapping[str, Sequence[int]]
    scores: Mapping[str, Score]

    def rows(self, problem: str) -> list[Row]:
        """The samples of a problem."""
        return [row_at(self.path, start) for start in self.starts.get(problem, ())]


@dataclass
class Remembered(Generic[T]):
    """What `read` made of the last few files, made again when a file has changed."""

    read: Callable[[Path], T]
    limit: int
    known: dict[Path, tuple[Stamp | None, T]] = field(default_factory=dict)

    def of(self, path: Path) -> T:
        """What the file says now."""
        now = stamp(path)
        before, made = self.known.pop(path, (None, None))
        if made is None or before != now:
            made = self.read(path)
        self.known[path] = now, made
        while len(self.known) > self.limit:
            del self.known[next(iter(self.known))]
        return made


def read_listed(path: Path) -> list[Listed]:
    """The problems of a file of problems."""
    return [
        Listed(path.stem, number, str(row["id"]), str(row["question"]), bool(row.get("solution")), start)
        for number, (start, _, row) in enumerate(scan(path), 1)
    ]


def read_kept(path: Path) -> SavedBuffers:
    """The offsets and counts of a buffer.jsonl."""
    starts, counts = {}, {}
    for start, _, row in scan(path):
        starts[row["id"]] = start
        counts[row["id"]] = counts_of(row["solutions"])
    return SavedBuffers(path, starts, counts)


def counts_of(solutions: Sequence[Row]) -> Counts:
    """The counts of a buffer's solutions."""
    full = sum(solution["kind"] == "fully_correct" for solution in solutions)
    last = max((int(solution["found"]) for solution in solutions), default=0)
    return Counts(full, len(solutions) - full, last)


def read_judged(path: Path) -> Judged:
    """The offsets and scores of an evaluation's samples."""
    starts: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    scores: defaultdict[str, Score] = defaultdict(lambda: Score(0, 0))
    for start, _, row in scan(path):
        problem, count = str(row["task_id"]), int(row.get("count", 1))
        starts[problem].append(start)
        drawn, passed = scores[problem]
        scores[problem] = Score(drawn + count, passed + count * bool(row["passed"]))
    return Judged(path, dict(starts), dict(scores))


class RunReader:
    """A run, read by problem."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.config = run.config
        self.rules, self.programs = run.rules, run.programs
        self.samples = SelfSamples(run.directory / "samples")
        self._listed = Remembered(read_listed, limit=len(SPLITS))
        self._kept = Remembered(read_kept, limit=1)
        self._judged = Remembered(read_judged, limit=8)

    @property
    def name(self) -> str:
        """The run's directory without the way to it."""
        return self.run.directory.resolve().name

    def listed(self) -> list[Listed]:
        """Every problem, those trained on first."""
        return [one for split in SPLITS for one in self._listed.of(self.run.problems_file(split))]

    def problem(self, listed: Listed) -> Problem:
        """The whole problem."""
        return problem_of(row_at(self.run.problems_file(listed.split), listed.start), self.programs.parse)

    def kept(self) -> SavedBuffers:
        """The newest buffers that were saved, those of the end once there are any."""
        directories = [self.run.directory / "final", *reversed(self.run.checkpoints().values())]
        files = (directory / "buffer.jsonl" for directory in directories)
        path = next((file for file in files if file.is_file()), None)
        return self._kept.of(path) if path is not None else SavedBuffers(None, {}, {})

    def problems_with_news(self) -> set[str]:
        """The problems for which something was found since the buffers were saved."""
        saved_at = self.kept().step
        if saved_at is None:
            return set()
        self.samples.update()
        return self.samples.problems_with_new_after(saved_at)

    def buffer(self, listed: Listed, problem: Problem) -> SolutionBuffer:
        """The buffer of a problem trained on as it is now; of another, the one its reference gives."""
        kept = self.kept()
        if kept.path is None or listed.split != "train" or problem.id not in kept.starts:
            buffer = seed_buffers([problem], self.rules, self.programs)[problem.id]
        else:
            saved = row_at(kept.path, kept.starts[problem.id])
            buffer = SolutionBuffer.from_json(problem, saved, self.programs)
        if kept.step is not None and listed.split == "train":
            self._catch_up(buffer, self.samples.new_after(kept.step, problem.id))
        return buffer

    def _catch_up(self, buffer: SolutionBuffer, news: Sequence[Row]) -> None:
        traces = traced([sampled_text(row) for row in news], self.programs)
        for row, trace in zip(news, traces, strict=True):
            buffer.consider(trace, int(row["step"]))

    def evaluated_steps(self) -> list[int]:
        """The steps with a whole evaluation."""
        names = (path.stem.removeprefix("step-") for path in self._evaluations.glob("step-*.json"))
        return sorted(int(name) for name in names if name.isdecimal())

    def judged(self, step: int) -> tuple[Judged, Judged]:
        """The evaluation at a step, and beside it the samples drawn for the paper's pass@1."""
        names = (f"step-{step}.jsonl", f"step-{step}.pass1.jsonl")
        full, pass1 = (self._judged.of(self._evaluations / name) for name in names)
        return full, pass1

    def metrics_at(self, step: int) -> list[tuple[str, float]]:
        """Names and values of the metrics of an evaluation."""
        summary = read_json(self._evaluations / f"step-{step}.json")
        return [(name, estimate["value"]) for name, estimate in summary["metrics"].items()]

    def step(self) -> int:
        """The last step that left a line."""
        return max((int(line["step"]) for line in self.run.metrics()), default=0)

    def version(self) -> str:
        """Another text whenever the files say something else."""
        final, folder = self.run.directory / "final" / "buffer.jsonl", self.run.directory / "samples"
        state = (
            [stamp(self.run.problems_file(split)) for split in SPLITS],
            stamp(final),
            sorted(self.run.checkpoints()),
            [(path.name, stamp(path)) for path in sorted(folder.glob("*.jsonl"))],
            [stamp(self._evaluations / f"step-{step}.jsonl") for step in self.evaluated_steps()],
        )
        return blake2b(repr(state).encode(), digest_size=8).hexdigest()

    @property
    def _evaluations(self) -> Path:
        return self.run.directory / "evaluations"
