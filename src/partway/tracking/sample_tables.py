"""Logs tables of samples and their verdicts to trackers that take tables."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from partway.runs import Run
from partway.training.callbacks import Watcher

if TYPE_CHECKING:
    from partway.training import SelfSamplingTrainer

WITH_TABLES = ("wandb", "trackio")  # both take a Rows of columns and rows
COLUMNS = ("step", "from", "problem", "question", "solution", "verdict", "count")
MOST = 100  # rows of self-samples, and of the evaluation
PER_PROBLEM = 2  # distinct solutions of a problem in an evaluation


def of_trainer(trainer: SelfSamplingTrainer) -> SampleTables:
    """Tables of the run that a trainer makes."""
    problems = (*(trainer.eval_dataset or ()), *trainer.train_dataset)
    return SampleTables(trainer.run, {problem.id: problem.question for problem in problems})


class SampleTables(Watcher):
    """Logs a table to every tracker of `report_to` that takes tables."""

    def __init__(self, run: Run, questions: Mapping[str, str]) -> None:
        self.run, self.questions = run, questions
        self.last_step = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.last_step = state.global_step

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        step = state.global_step
        trackers = [name for name in WITH_TABLES if name in args.report_to]
        if not trackers or not state.is_world_process_zero:
            return
        rows = [*self._self_samples(), *self._evaluation(step)]
        for tracker in trackers:
            log_table(tracker, rows, step)
        self.last_step = step

    def _self_samples(self) -> Iterator[list[Any]]:
        """The latest since the last table."""
        # Read from the run's files: trackers see what a report would, and nothing is kept in memory.
        for sample in deque(self.run.samples(after=self.last_step), maxlen=MOST):
            question, verdict = self.questions.get(sample.problem, ""), str(sample.verdict)
            yield [
                sample.step,
                "self-sample",
                sample.problem,
                question,
                sample.written,
                verdict,
                sample.count,
            ]

    def _evaluation(self, step: int) -> Iterator[list[Any]]:
        """A few solutions of the first problems, right or wrong and why."""
        if step not in self.run.evaluated_steps():
            return
        shown: Counter[str] = Counter()
        for row in self.run.evaluation_rows(step):
            problem = str(row["task_id"])
            if shown[problem] < PER_PROBLEM and shown.total() < MOST:
                shown[problem] += 1
                question, count = self.questions.get(problem, ""), row.get("count", 1)
                yield [step, "evaluation", problem, question, row["completion"], row["result"], count]


def log_table(tracker: str, rows: list[list[Any]], step: int) -> None:
    """Hand a table to a tracker, beside the step as transformers names it there."""
    module = import_module(tracker)
    if getattr(module, "run", module) is not None:  # wandb that was told to be silent has no run
        table = module.Table(columns=list(COLUMNS), data=rows)
        module.log({"samples": table, "train/global_step": step})
