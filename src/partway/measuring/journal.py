"""An evaluation that can be stopped at any moment and continues from there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from partway.errors import RunError
from partway.evaluation import EvaluationPlan, EvaluationProgress, Judged, evaluate
from partway.evaluation.results import Phase
from partway.language import Language
from partway.language.named import settings_of
from partway.measuring.result_files import read_summary
from partway.models.engine import Engine
from partway.problem import Problem
from partway.runs.rows import UNFINISHED, key_of, problems_digest
from partway.runs.run import SPLITS, Run


class EvaluationJournal:
    """The samples of finished problems in a file, each under a key that names everything they depend on.

    `model` is a text that changes when the weights or the prompt do. Lines under other keys or cut off in the
    middle do no harm.
    """

    def __init__(self, path: str | Path, model: str, language: Language) -> None:
        self.path, self.model, self.language = Path(path), model, language
        self._finished: dict[str, tuple[Judged, ...]] = {}
        if self.path.exists():
            # A line without its end was being written when the process was killed.
            *lines, cut_off = self.path.read_bytes().split(b"\n")
            self._finished.update(entry for line in lines for entry in _entries(line))
            with self.path.open("r+b") as stream:
                stream.truncate(self.path.stat().st_size - len(cut_off))

    def key(self, phase: Phase, problem: Problem) -> str:
        """A text that stands for all that decides the samples of a problem and the verdicts on them."""
        of_problem = problem.id, problem.question, problem.answer, problem.context
        return key_of(self.model, phase, settings_of(self.language), *of_problem)

    def finished(self, phase: Phase, problems: Sequence[Problem]) -> dict[str, tuple[Judged, ...]]:
        """The samples of each problem that was finished before, by its id."""
        keys = {problem.id: self.key(phase, problem) for problem in problems}
        return {task_id: self._finished[key] for task_id, key in keys.items() if key in self._finished}

    def add(self, phase: Phase, problem: Problem, samples: Sequence[Judged]) -> None:
        """Keep the samples of a problem from now on."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        row = {"key": self.key(phase, problem), "samples": [sample.to_json() for sample in samples]}
        with self.path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(f"{json.dumps(row)}\n")

    def remove(self) -> None:
        """Delete the file: the evaluation is finished and its results are written."""
        self.path.unlink(missing_ok=True)


def _entries(line: bytes) -> list[tuple[str, tuple[Judged, ...]]]:
    """What a line says; a damaged one says nothing, and its problem is done again."""
    try:
        row = json.loads(line)
        return [(row["key"], tuple(Judged.from_json(sample) for sample in row["samples"]))]
    except (ValueError, KeyError, TypeError):
        return []


def evaluate_into(
    path: Path,
    engine: Engine,
    problems: Sequence[Problem],
    plan: EvaluationPlan,
    *,
    model: str,
    about: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    expand: bool = True,
    on_progress: Callable[[EvaluationProgress], None] = lambda progress: None,
) -> dict[str, Any]:
    """The summary in `path`: read if this evaluation is finished, continued if it was begun, else made.

    Results of another evaluation in its place are an error unless `overwrite`.
    """
    journal = EvaluationJournal(journal_beside(path), model, plan.language)
    keys = [{problem.id: journal.key(phase, problem) for problem in problems} for phase in plan.phases]
    digest = key_of(plan.ks, keys, *([plan.own_metrics] if plan.own_metrics else []))
    if path.exists() and not overwrite:
        summary: dict[str, Any] = read_summary(path)
        if summary.get("digest") != digest:
            raise RunError(f"{path}: another evaluation's results; take another --name, or --overwrite them")
        return summary
    evaluation = evaluate(engine, problems, plan, journal=journal, on_progress=on_progress)
    about = {**(about or {}), "problems_sha256": problems_digest(problems), "digest": digest}
    keep_problems(path, problems)
    evaluation.write(path, expand=expand, about=about)
    journal.remove()
    return {**about, **evaluation.to_json()}


def keep_problems(summary: Path, problems: Sequence[Problem]) -> None:
    """Save the problems of an evaluation in the run it belongs to, so that its samples can be looked at."""
    run = Run(summary.parent.parent)
    split = re.sub(r"-\d+$", "", summary.stem)  # test-100: the test problems, asked of another checkpoint
    # The problems of `train` and `dev` are the run's own and stay as they are.
    if run.is_started and summary.parent == run.evaluations_directory and split not in SPLITS:
        run.write_problems(split, problems)


def journal_beside(summary: Path) -> Path:
    """What an unfinished evaluation has finished so far."""
    return summary.with_suffix(UNFINISHED)
