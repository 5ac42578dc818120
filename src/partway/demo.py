"""The paper's experiment in small: MLE against self-sampling, from one pretrained model.

Few problems, one reference each, many epochs: learning from the references alone makes the model
overconfident. Each arm starts from the same weights, makes the same number of steps on the same problems, is
chosen by pass@1 on dev as in the paper, and is measured on test problems it never saw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Literal

from partway.errors import ProblemError, RunError
from partway.evaluation import Estimate, EvaluationPlan, differences, estimates, evaluate_into
from partway.evaluation.intervals import Scores
from partway.evaluation.results import metric_estimates, read_results, scores_of
from partway.models.settings import SamplingSettings
from partway.problem import Problem
from partway.runs import Run

if TYPE_CHECKING:
    from partway.training import SelfSamplingConfig

MODEL = "tiny-storyproblems"


@dataclass(frozen=True)
class Arm:
    """A way of learning: what is kept of the model's own samples, and the objective over it."""

    name: str
    self_sampling: Literal["none", "fcs", "fcs+pcs"]
    objective: str


MLE = Arm("MLE", "none", "mle")
FCS = Arm("FCS", "fcs", "mle_aug")
FCS_PCS = Arm("FCS+PCS", "fcs+pcs", "mle_aug")
ALL_ARMS = (
    MLE,
    Arm("FCS, MML", "fcs", "mml"),
    FCS,
    Arm("FCS, beta-MML", "fcs", "beta_mml"),
    Arm("FCS+PCS, MML", "fcs+pcs", "mml"),
    FCS_PCS,
    Arm("FCS+PCS, beta-MML", "fcs+pcs", "beta_mml"),
)


@dataclass(frozen=True)
class Experiment:
    """How much of everything."""

    arms: tuple[Arm, ...] = (MLE, FCS, FCS_PCS)
    seeds: tuple[int, ...] = (0,)
    train: int = 200
    dev: int = 100
    test: int = 200
    steps: int = 200
    eval_steps: int = 100
    dev_samples: int = 20
    test_samples: int = 100
    batch_size: int = 32
    learning_rate: float = 5e-4
    max_completion_length: int = 120
    model: str = MODEL
    data: Path | None = None  # a folder with other problems than the built-in ones

    @property
    def ks(self) -> tuple[int, ...]:
        return tuple(k for k in (5, 10, 20, 50, 100) if k <= self.test_samples)

    def problems(self, seed: int) -> dict[str, list[Problem]]:
        """The problems of a seed: each has its own, so that a result is not one choice of problems."""
        counts = {"train": self.train, "dev": self.dev, "test": self.test}
        if self.data is not None:
            return {split: _drawn(self.data / f"{split}.jsonl", n, seed) for split, n in counts.items()}
        drawn = _easy_problems(3 * sum(counts.values()), seed=1_000 + seed)
        unseen = iter([problem for problem in drawn if not _is_for_pretraining(problem)])
        return {split: list(islice(unseen, count)) for split, count in counts.items()}


def _drawn(file: Path, count: int, seed: int) -> list[Problem]:
    from partway.datasets import load_problems

    problems = load_problems(file)
    if len(problems) < count:
        raise ProblemError(f"{file}: {len(problems):,} problems, {count:,} are needed")
    return Random(f"{seed}/{file.name}").sample(problems, count)


def pretraining_problems() -> list[Problem]:
    """What the pretrained model has seen: thousands of problems, none of which an experiment uses."""
    return [problem for problem in _easy_problems(32_000, seed=0) if _is_for_pretraining(problem)]


def _easy_problems(count: int, seed: int) -> list[Problem]:
    """Problems that differ in their questions, each with one reference in a style of its own."""
    from partway.datasets.storyproblems import generate_problems

    return generate_problems(count, seed=seed, difficulty="easy")


def _is_for_pretraining(problem: Problem) -> bool:
    """Half of all questions, told by their text, so that the halves have none in common."""
    return blake2b(problem.question.encode(), digest_size=1).digest()[0] % 2 == 0


def pretrain(directory: Path) -> None:
    """Make the pretrained model anew: a tiny model trained from scratch on the references alone."""
    from partway.training import SelfSamplingConfig, SelfSamplingTrainer

    config = SelfSamplingConfig(
        output_dir=str(directory),
        model_name_or_path="tiny",
        self_sampling="none",
        objective="mle",
        loss_normalization="length",
        max_steps=1_000,
        learning_rate=3e-3,
        lr_scheduler_type="cosine",
        warmup_steps=50,
        per_device_train_batch_size=32,
        save_steps=250,
        eval_strategy="no",
        load_best_model_at_end=False,
        seed=0,
        report_to="none",
    )
    SelfSamplingTrainer("tiny", config, pretraining_problems()).train()


def experiment_named(name: str) -> Experiment:
    """The experiment in three sizes: `quick`, `normal`, `full`."""
    return {
        "quick": Experiment(test=40, dev=30, steps=30, eval_steps=15, dev_samples=5, test_samples=20),
        "normal": Experiment(),
        "full": Experiment(arms=ALL_ARMS, seeds=(0, 1, 2)),
    }[name]


@dataclass(frozen=True)
class Stage:
    """How far an arm is: training steps or test samples, and what there is to say."""

    name: str
    done: int
    total: int
    text: str


Tell = Callable[[Stage], None]


@dataclass(frozen=True)
class Outcome:
    """A trained arm: its run directory and the scores of every test problem, by metric."""

    arm: Arm
    seed: int
    run: Run
    scores: Scores


def run_arm(experiment: Experiment, arm: Arm, seed: int, directory: Path, tell: Tell) -> Outcome:
    """Train one arm and measure it on the test problems; what is finished already is not done again."""
    problems = experiment.problems(seed)
    run = Run(directory / f"{arm.name.replace(', ', '-').replace('+', '-').lower()}-seed{seed}")
    if not run.is_finished:
        train(experiment, arm, seed, run, problems, tell)
    summary = run.evaluation_file("test")
    if not summary.exists():
        measure(experiment, seed, run, problems["test"], summary, tell)
    results, plan = read_results(summary)
    if {result.task_id for result in results} != {problem.id for problem in problems["test"]}:
        raise RunError(
            f"{run.directory}: made by a demo of other problems or another size; choose another --out"
        )
    return Outcome(arm, seed, run, scores_of(results, plan))


def train(
    experiment: Experiment, arm: Arm, seed: int, run: Run, problems: Mapping[str, list[Problem]], tell: Tell
) -> None:
    """Fine-tune the pretrained model as the arm says."""
    from partway.training import SelfSamplingTrainer
    from partway.training.progress import Relay

    config = training_config(experiment, arm, seed, run.directory)
    relay = Relay(lambda done, total, text: tell(Stage("training", done, total, text)))
    trainer = SelfSamplingTrainer(
        experiment.model, config, problems["train"], problems["dev"], callbacks=[relay]
    )
    trainer.train(resume_from_checkpoint=bool(run.is_started and run.checkpoints()))


def training_config(experiment: Experiment, arm: Arm, seed: int, directory: Path) -> SelfSamplingConfig:
    from partway.training import SelfSamplingConfig

    return SelfSamplingConfig(
        output_dir=str(directory),
        model_name_or_path=experiment.model,
        self_sampling=arm.self_sampling,
        objective=arm.objective,
        max_steps=experiment.steps,
        per_device_train_batch_size=experiment.batch_size,
        learning_rate=experiment.learning_rate,
        warmup_steps=min(20, experiment.steps // 5),
        max_completion_length=experiment.max_completion_length,
        eval_steps=experiment.eval_steps,
        eval_samples=experiment.dev_samples,
        save_steps=experiment.eval_steps,
        logging_steps=10,
        seed=seed,
        report_to="none",
        disable_tqdm=True,
    )


def measure(
    experiment: Experiment,
    seed: int,
    run: Run,
    problems: Sequence[Problem],
    summary: Path,
    tell: Tell,
) -> None:
    """pass@k of the chosen checkpoint on the test problems."""
    from partway.models.loading import load_model
    from partway.models.local_engine import LocalEngine

    settings = SamplingSettings(temperature=0.8, max_completion_length=experiment.max_completion_length)
    plan = EvaluationPlan(
        samples=experiment.test_samples, settings=settings, ks=(1, *experiment.ks), seed=seed
    )
    engine = LocalEngine(load_model(run.final))
    evaluate_into(
        summary,
        engine,
        problems,
        plan,
        model=str(run.directory),
        expand=False,
        on_progress=lambda progress: tell(Stage("measuring", progress.done, progress.total, "samples drawn")),
    )


def means(outcomes: Sequence[Outcome]) -> dict[str, Estimate]:
    """Every metric over seeds and problems."""
    return metric_estimates([outcome.scores for outcome in outcomes])


def gains(outcomes: Sequence[Outcome], baseline: Sequence[Outcome]) -> dict[str, Estimate]:
    """What the outcomes have over those of `baseline` with the same seeds, problem by problem."""
    return estimates(differences([o.scores for o in outcomes], [o.scores for o in baseline]))
