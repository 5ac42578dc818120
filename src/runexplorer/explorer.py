"""Answers what the page asks about a run: its facts, the list of problems, one problem, a trace."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from partway.buffer import SolutionBuffer
from partway.errors import CodeError, PartwayError, RunError
from partway.language.language import Language
from partway.language.named import flat
from partway.problem import Problem
from partway.runs import Row, Run
from runexplorer.known import evaluation_view, self_sample_groups, self_samples_view
from runexplorer.overview import Entry, Index, entries_of, overview_of
from runexplorer.problem_view import known_of, problem_view, typed_view
from runexplorer.run_parts import RunReader

SETTINGS = {
    "model_name_or_path": "model",
    "self_sampling": "self-sampling",
    "objective": "objective",
    "num_generations": "samples per problem and step",
    "temperature": "temperature",
    "state": "states compared as",
    "seed": "seed",
}
T = TypeVar("T")


@dataclass(frozen=True)
class ProblemFiles:
    """What the files say of a problem: its buffer, its self-samples, its samples in an evaluation."""

    problem: Problem
    buffer: SolutionBuffer
    samples: Sequence[Row] = ()
    evaluation: str | None = None
    evaluations: Sequence[str] = ()
    evaluated: Sequence[Row] = ()
    pass1: Sequence[Row] = ()


class UnknownProblemError(LookupError):
    """A page asks for a problem that the run does not have."""


class Explorer:
    """Answers from the files of a run; `refresh` takes in what training wrote since."""

    def __init__(self, run: Run, other: Run | None = None) -> None:
        self.reader = RunReader(run)
        self.other = RunReader(other) if other is not None else None
        self._lock = threading.RLock()  # around the readers; the index is replaced, never changed
        self._index: Index | None = None

    @property
    def index(self) -> Index:
        """The list of problems as of the last refresh."""
        return self._index or self.refresh()

    def refresh(self) -> Index:
        """The list of problems as the files are now."""
        with self._lock:
            version = self.version()
            if self._index is None or self._index.version != version:
                entries = self._reading(lambda: entries_of(self.reader, self.other))
                self._index = Index(entries, version)
            return self._index

    def check(self) -> None:
        """Refuse runs that cannot be shown or compared."""
        entries = self.index.entries
        if not entries:
            raise RunError(f"{self.reader.run.directory}: there are no problems in it; was it just started?")
        if self.other is not None and all(entry.other is None for entry in entries):
            raise RunError(
                f"{self.reader.run.directory} and {self.other.run.directory} have no problem in common;"
                " compare runs on the same problems"
            )

    def warm(self) -> None:
        """Read ahead what the first problem that is opened would wait for."""
        with suppress(PartwayError):  # said again, and shown, when it is needed
            self.reader.samples.update()

    def version(self) -> str:
        """Another text whenever the files say something else."""
        versions = [reader.version() for reader in (self.reader, self.other) if reader is not None]
        return "/".join(versions)

    def pulse(self) -> Row:
        """How far the run is, without reading it again."""
        return {
            "version": self.version(),
            "step": self.reader.run.last_step(),
            "finished": self.reader.run.is_finished,
        }

    def facts(self) -> Row:
        """What the page says about the run itself."""
        index = self.refresh()
        config = flat(self.reader.config)
        with self._lock:
            return {
                **self.pulse(),
                "version": index.version,
                "name": self.reader.name,
                "other": self.other.name if self.other is not None else None,
                "max_steps": config.get("max_steps", -1),
                "settings": [
                    [label, _setting(config[key])] for key, label in SETTINGS.items() if key in config
                ],
                "splits": Counter(entry.listed.split for entry in index.entries),
                "final_step": self.reader.final_step,
                "totals": index.totals(),
                "results": self._results(index),
                "overview": self._reading(lambda: overview_of(self.reader, index)),
            }

    def _results(self, index: Index) -> list[Row]:
        """For each split that was evaluated on: which evaluation is shown, its metrics, problems solved."""
        found: list[Row] = []
        for split in self.reader.run.splits():
            name = self.reader.shown_evaluation(split)
            scores = [e.standing.score for e in index.entries if e.listed.split == split]
            if name is not None and any(score.drawn for score in scores):
                solved = sum(score.passed > 0 for score in scores)
                evaluated = sum(score.drawn > 0 for score in scores)
                metrics = self.reader.metrics_of(name)
                found.append(
                    {"split": split, "name": name, "solved": solved, "of": evaluated, "metrics": metrics}
                )
        return found

    def problem(self, key: str, evaluation: str = "") -> Row:
        """A problem with everything there is to see of it; its evaluation may be chosen by name."""
        entry = self.entry(key)
        # Files are read under the lock; programs, which may take long, are run without it.
        with self._lock:
            material = self._reading(lambda: self._material(entry, evaluation))
        return {"key": key, **self._view(material)}

    def _material(self, entry: Entry, evaluation: str) -> ProblemFiles:
        reader, split = self.reader, entry.listed.split
        problem = reader.problem(entry.listed)
        samples: list[Row] = []
        if entry.has_buffer:
            reader.samples.update()
            samples = reader.samples.rows(problem.id)
        buffer, names = reader.buffer(entry.listed, problem), reader.evaluations(split)
        name = evaluation if evaluation in names else reader.shown_evaluation(split)
        if name is None:
            return ProblemFiles(problem, buffer, samples)
        full, pass1 = reader.judged(name)
        return ProblemFiles(
            problem, buffer, samples, name, names, full.rows(problem.id), pass1.rows(problem.id)
        )

    def _view(self, material: ProblemFiles) -> Row:
        """What is made of the material; nothing else waits while programs are run for it."""
        problem, buffer, language = material.problem, material.buffer, self.reader.language
        known = known_of(problem, buffer)
        samples = self_sample_groups(problem, material.samples, language)
        view = problem_view(problem, buffer, known, samples) | {"ending": _ending(language)}
        if samples:
            view["samples"] = self_samples_view(samples, known)
        if material.evaluation is not None:
            view["evaluation"] = {
                "name": material.evaluation,
                "names": material.evaluations,
                **evaluation_view(material.evaluated, material.pass1, known),
            }
        return view

    def trace(self, key: str, text: str) -> Row:
        """A typed program beside what is known of a problem."""
        listed = self.entry(key).listed
        with self._lock:
            problem = self.reader.problem(listed)
            buffer = self._reading(lambda: self.reader.buffer(listed, problem))
        return typed_view(text, buffer, known_of(problem, buffer))

    def entry(self, key: str) -> Entry:
        if key not in self.index.by_key:
            raise UnknownProblemError(f"there is no problem {key!r} in this run")
        return self.index.by_key[key]

    def _reading(self, read: Callable[[], T]) -> T:
        """What `read` gives; a checkpoint may be replaced by a newer one while it is read."""
        try:
            return read()
        except FileNotFoundError:
            return read()  # training removes a checkpoint only when a newer one is whole


def _setting(value: object) -> str:
    """A setting as text; of the path to a model only its end, for what is shown may be passed on."""
    text = str(value)
    return Path(text).name if Path(text).is_absolute() else text


def _ending(language: Language) -> str:
    """What a program does at its end, as a verb."""
    try:
        return language.instruction.ending
    except CodeError:
        return "ends"
