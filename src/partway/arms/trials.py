"""One arm with one seed: where its files go, and how a model of it is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from partway.arms.arms import Arm
from partway.arms.experiment import Experiment
from partway.errors import RunError
from partway.evaluation import EvaluationPlan
from partway.evaluation.results import scores_of
from partway.measuring.journal import evaluate_into
from partway.measuring.result_files import read_results
from partway.models.engine import SamplingSettings
from partway.problem import Problem
from partway.runs import Run
from passatk import Scores

if TYPE_CHECKING:
    from partway.models.engine import Engine
    from partway.models.loading import LanguageModel

TWIN = 1_000  # added to a seed
Problems = Mapping[str, list[Problem]]


@dataclass(frozen=True)
class Stage:
    """How far an arm is: training steps or test samples, and what there is to say."""

    name: str
    done: int
    total: int
    text: str


Tell = Callable[[Stage], None]


def loaded(name: str | Path, dtype: str | None = None) -> LanguageModel:
    """The model of that name; torch is imported only now."""
    from partway.models.loading import load_model

    return load_model(name, dtype=dtype)


def sampling(load: Callable[[], LanguageModel]) -> Engine:
    """What draws the samples of a model, which is loaded for it."""
    from partway.sampling.local_engine import LocalEngine

    return LocalEngine(load())


@dataclass(frozen=True)
class Trial:
    """An arm and a seed of an experiment, the folder of all its files, and whom to tell how far it is."""

    experiment: Experiment
    arm: Arm
    seed: int
    directory: Path
    tell: Tell

    def of(self, arm: Arm) -> Trial:
        """Another arm with the same seed."""
        return replace(self, arm=arm)

    @property
    def parent(self) -> Trial | None:
        """The arm whose model it takes, with the same seed."""
        return self.of(self.experiment.arm(self.arm.of)) if self.arm.of is not None else None

    @property
    def twin(self) -> Trial:
        """The same once more, trained with another seed on the same problems."""
        return replace(self, seed=self.seed + TWIN)

    def trials(self) -> dict[float, Run]:
        """The runs in which the arm's learning rates are tried, with the first seed."""
        first = replace(self, seed=self.experiment.seeds[0]).folder
        rates = self.experiment.tried(self.arm)
        return {rate: Run(first.with_name(f"{first.name}-rate{rate:g}")) for rate in rates}

    def engine(self, model: str | Path) -> Callable[[], Engine]:
        """What makes the engine of a model when it is needed."""
        return partial(sampling, partial(loaded, model, self.experiment.dtype))

    @property
    def run(self) -> Run:
        """Its run; of several rounds the last one's."""
        return Run(self.folder)

    @property
    def folder(self) -> Path:
        """Where its files are."""
        # `fcs+pcs` is called fcs-pcs in a path.
        return self.directory / f"{self.arm.name.replace('+', '-')}-seed{self.seed}"

    def round(self, number: int) -> Run:
        """The run of one of several rounds."""
        is_last = number == self.arm.rounds  # which has the arm's own name, so that reports find it
        return self.run if is_last else Run(self.folder.with_name(f"{self.folder.name}-round{number}"))

    def round_file(self, number: int, kind: str) -> Path:
        """A file about what a round begins with."""
        return self.folder.with_name(f"{self.folder.name}-rounds") / f"round{number}{kind}"

    def plan(self, samples: int, temperature: float = 0.8, *, pass1: bool = True) -> EvaluationPlan:
        """How a model is measured: the paper's way unless told otherwise."""
        return EvaluationPlan(
            samples=samples,
            settings=SamplingSettings(
                temperature=temperature, max_completion_length=self.experiment.max_completion_length
            ),
            ks=tuple(k for k in (1, *self.experiment.ks) if k <= samples),  # dev has fewer than test
            pass1_samples=int(pass1),
            seed=self.seed,
            language=self.experiment.language,
            own_metrics=tuple(self.experiment.own_metrics or ()),
        )

    def measured(
        self,
        load: Callable[[], Engine],
        summary: Path,
        problems: Sequence[Problem],
        plan: EvaluationPlan,
    ) -> Scores:
        """The scores of every problem, drawn unless `summary` has them already."""
        if not summary.exists():
            self.draw(load(), summary, problems, plan)
        results, drawn = read_results(summary)
        # Scores of other problems or samples would be compared as if they were of the same.
        of_others = {result.task_id for result in results} != {problem.id for problem in problems}
        if of_others or replace(drawn, ks=plan.ks) != plan:
            raise RunError(
                f"{summary}: made by a comparison of other problems or another size; choose another --out"
            )
        return scores_of(results, plan)

    def draw(self, engine: Engine, summary: Path, problems: Sequence[Problem], plan: EvaluationPlan) -> None:
        """Draw samples of every problem and write what they score."""
        evaluate_into(
            summary,
            engine,
            problems,
            plan,
            model=str(summary),
            expand=False,  # equal samples in one line with their count: a test has a hundred of each
            on_progress=lambda now: self.tell(Stage("measuring", now.done, now.total, "samples drawn")),
        )
