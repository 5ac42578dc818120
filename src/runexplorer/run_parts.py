"""The parts of a run directory that the explorer needs, each found by problem and read again when it changes.

Files of any length are walked once; what is remembered of them is where each problem's rows begin and a few
counts. A run that is still training is read as far as it is written.
"""

from __future__ import annotations

import threading
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from partway.buffer import SolutionBuffer, Verdict, seed_buffers
from partway.errors import CodeError, RunError
from partway.language import Failure, Language, Trace, trace_all
from partway.problem import Problem, problem_of
from partway.runs import Row, Run, read_json
from partway.runs.rows import parsed_row, samples_beside, scan
from partway.sample import traced_text

T = TypeVar("T")
FILE_SHIFT = 40  # a place is a file's number and the byte in it where a row begins
MAX_REMEMBERED = 4096

Stamp = tuple[int, int, int]

_exhausted: dict[tuple[str, str, Language], Trace] = {}


class Listed(NamedTuple):
    """A problem as a file lists it: `number` is its line, counted from 1."""

    split: str
    number: int
    id: str
    question: str
    has_reference: bool
    start: int


class Counts(NamedTuple):
    """What is kept for a problem by kind, how much of it seems right by luck, when the latest was found."""

    fully_correct: int = 0
    partially_correct: int = 0
    doubted: int = 0
    last_found: int = 0


class Score(NamedTuple):
    """How many samples an evaluation drew of a problem, and how many of them were right."""

    drawn: int = 0
    passed: int = 0


@dataclass(frozen=True)
class SavedBuffers:
    """A buffer.jsonl, if one was saved yet: where each problem's row begins and what it counts."""

    path: Path | None
    starts: Mapping[str, int]
    counts: Mapping[str, Counts]


@dataclass(frozen=True)
class JudgedFile:
    """The samples of an evaluation: where each problem's rows begin, and its score."""

    path: Path
    starts: Mapping[str, Sequence[int]]
    scores: Mapping[str, Score]

    def rows(self, problem: str) -> list[Row]:
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
        before, made = self.known.pop(path, (None, None))  # it comes back last: the first is the oldest
        if made is None or before != now:
            made = self.read(path)
        self.known[path] = now, made
        while len(self.known) > self.limit:
            del self.known[next(iter(self.known))]
        return made


def read_listed(path: Path) -> list[Listed]:
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
    kinds = Counter(solution["kind"] for solution in solutions)
    last = max((int(solution["found"]) for solution in solutions), default=0)
    doubted = sum("flag" in solution for solution in solutions)
    return Counts(kinds["fully_correct"], kinds["partially_correct"], doubted, last)


def read_judged(path: Path) -> JudgedFile:
    """The offsets and scores of an evaluation's samples."""
    # Eight bytes for each place: an evaluation may have millions of samples.
    starts: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    scores: defaultdict[str, Score] = defaultdict(Score)
    for start, _, row in scan(path):
        problem, count = str(row["task_id"]), int(row.get("count", 1))
        starts[problem].append(start)
        drawn, passed = scores[problem]
        scores[problem] = Score(drawn + count, passed + count * bool(row["passed"]))
    return JudgedFile(path, dict(starts), dict(scores))


class SelfSamples:
    """Every self-sample of a run by problem; `update` reads on from where the last one ended."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._updating = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._files: list[Path] = []
        self._ends: dict[Path, tuple[int, int, Row | None]] = {}  # read so far: last row's start, end, itself
        self._places: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._new: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # steps and places

    def update(self) -> None:
        """Take in what was written since; start over if a resumed run wrote something else instead."""
        with self._updating:
            self._read_on()

    def _read_on(self) -> None:
        # A resumed run cuts its files back and writes on: what was read after the cut is no longer there.
        if not all(map(self._is_unchanged, self._files)):
            self._forget()
        for path in self.run.sample_files():
            if path not in self._ends:
                self._files.append(path)
                self._ends[path] = 0, 0, None
            first = self._files.index(path) << FILE_SHIFT
            for start, end, row in scan(path, self._ends[path][1]):
                place = first | start
                self._places[row["problem"]].append(place)
                if Verdict(row["verdict"]).is_new:
                    self._new[row["problem"]].append((int(row["step"]), place))
                self._ends[path] = start, end, row

    def _is_unchanged(self, path: Path) -> bool:
        start, end, row = self._ends[path]
        if not path.exists() or path.stat().st_size < end:
            return False
        try:
            return row is None or row_at(path, start) == row
        except RunError:  # other rows are there now, and none begins at this byte
            return False

    def rows(self, problem: str) -> list[Row]:
        """The samples of a problem, in the order drawn."""
        return [self._row(place) for place in self._places.get(problem, ())]

    def new_after(self, step: int, problem: str) -> list[Row]:
        """The samples of a problem after `step` of which the buffer kept something."""
        return [self._row(place) for drawn_at, place in self._new.get(problem, ()) if drawn_at > step]

    def problems_with_new_after(self, step: int) -> set[str]:
        """The problems for which `new_after` has anything."""
        return {problem for problem, found in self._new.items() if found[-1][0] > step}

    def _row(self, place: int) -> Row:
        return row_at(self._files[place >> FILE_SHIFT], place & (1 << FILE_SHIFT) - 1)


def sampled_text(row: Row) -> str:
    """What was traced of a self-sample."""
    return traced_text(row["prefix"], row["completion"], row["finished"])


def traced(problem: Problem, texts: Sequence[str], language: Language) -> list[Trace]:
    """The traces of solutions of a problem as the buffers of a run see them.

    What ran out of time or memory once is not run again while the page is open: a reader would wait again.
    """
    key = problem.id
    fresh = list(dict.fromkeys(text for text in texts if (key, text, language) not in _exhausted))
    try:
        found = dict(zip(fresh, trace_all(fresh, language, problem), strict=True))
    except CodeError as error:  # shown as it was written
        failure = Failure("forbidden", str(error), 0)
        found = {text: Trace(language.parse(text), (), (), failure) for text in fresh}
    traces = [found.get(text) or _exhausted[key, text, language] for text in texts]
    for text, trace in found.items():
        if trace.failure is not None and trace.failure.kind in ("timeout", "memory"):
            _exhausted[key, text, language] = trace
    while len(_exhausted) > MAX_REMEMBERED:
        del _exhausted[next(iter(_exhausted))]  # the oldest
    return traces


class RunReader:
    """A run, read by problem."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.config = run.config
        self.rules, self.language = run.rules, run.language
        self.samples = SelfSamples(run)
        self._listed = Remembered(read_listed, limit=8)
        self._kept = Remembered(read_kept, limit=1)
        self._judged = Remembered(read_judged, limit=8)

    @property
    def name(self) -> str:
        """The run's directory without the way to it."""
        return self.run.directory.resolve().name

    def listed(self) -> list[Listed]:
        """Every problem, those trained on first."""
        return [one for split in self.run.splits() for one in self._listed.of(self.run.problems_file(split))]

    def problem(self, listed: Listed) -> Problem:
        return problem_of(row_at(self.run.problems_file(listed.split), listed.start), self.language.parse)

    def kept(self) -> SavedBuffers:
        """The newest buffers that were saved, those of the end once there are any."""
        path = self.run.buffer_file()
        return self._kept.of(path) if path is not None else SavedBuffers(None, {}, {})

    def _saved_at(self, kept: SavedBuffers) -> int | None:
        """The step at which buffers were saved, None for those of the end, after which nothing is found."""
        return 0 if kept.path is None else self.run.buffer_step(kept.path)

    def problems_with_news(self) -> set[str]:
        """The problems for which something was found since the buffers were saved."""
        saved_at = self._saved_at(self.kept())
        if saved_at is None:
            return set()
        self.samples.update()
        return self.samples.problems_with_new_after(saved_at)

    def buffer(self, listed: Listed, problem: Problem) -> SolutionBuffer:
        """The buffer of a problem trained on as it is now; of another, the one its reference gives."""
        kept = self.kept()
        if kept.path is None or listed.split != "train" or problem.id not in kept.starts:
            buffer = self._seeded(problem)
        else:
            saved = row_at(kept.path, kept.starts[problem.id])
            buffer = SolutionBuffer.from_json(problem, saved, self.language)
        saved_at = self._saved_at(kept)
        if saved_at is not None and listed.split == "train":
            news = self.samples.new_after(saved_at, problem.id)
            traces = traced(problem, [sampled_text(row) for row in news], self.language)
            with suppress(CodeError):  # what was found since is not known without it
                for row, trace in zip(news, traces, strict=True):
                    buffer.consider(trace, int(row["step"]))
        return buffer

    def _seeded(self, problem: Problem) -> SolutionBuffer:
        try:
            return seed_buffers([problem], self.rules, self.language)[problem.id]
        except CodeError:  # its reference cannot be checked
            return SolutionBuffer(replace(problem, reference=None), self.rules, self.language)

    @property
    def final_step(self) -> int | None:
        """The step whose model the final one is, None while the run is training."""
        return self.run.final_step if self.run.is_finished else None

    def evaluations(self, split: str) -> list[str]:
        """The evaluations on a split: of training by their steps, then the one that is named as it."""
        steps = [str(step) for step in self.run.evaluated_steps()] if split == "dev" else []
        return [*steps, *(name for name in self.run.evaluation_names() if name == split)]

    def shown_evaluation(self, split: str) -> str | None:
        """The evaluation to begin with: of the final model once there is one, else the newest."""
        names, step = self.evaluations(split), str(self.final_step)
        return step if step in names and split not in names else names[-1] if names else None

    def judged(self, name: str) -> tuple[JudgedFile, JudgedFile]:
        """The evaluation of this name, and beside it the samples drawn for the paper's pass@1."""
        full, pass1 = (self._judged.of(path) for path in samples_beside(self._summary(name)))
        return full, pass1

    def metrics_of(self, name: str) -> list[tuple[str, float]]:
        """Names and values of the metrics of an evaluation."""
        summary = read_json(self._summary(name))
        return [(metric, estimate["value"]) for metric, estimate in summary["metrics"].items()]

    def _summary(self, name: str) -> Path:
        return self.run.evaluation_file(int(name) if name.isdecimal() else name)

    def version(self) -> str:
        """Another text whenever the files say something else."""
        run, newest = self.run, self.run.buffer_file()
        # Sizes and times, not contents: this is asked every few seconds.
        state = (
            [stamp(run.problems_file(split)) for split in run.splits()],
            (newest, newest and stamp(newest)),
            sorted(run.checkpoints()),
            [(path.name, stamp(path)) for path in run.sample_files()],
            [stamp(run.evaluation_file(step)) for step in run.evaluated_steps()],
            [stamp(run.evaluation_file(name)) for name in run.evaluation_names()],
        )
        return blake2b(repr(state).encode(), digest_size=8).hexdigest()


def row_at(path: Path, start: int) -> Row:
    """The row that begins at byte `start`: one row of a large file costs one seek."""
    with path.open("rb") as stream:
        stream.seek(start)
        return parsed_row(stream.readline(), path, start)


def stamp(path: Path) -> Stamp | None:
    """What changes whenever the file does; None without a file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size  # a file put in its place has another inode
