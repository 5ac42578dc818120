"""Runs one arm with one seed: trains it, measures what the rules choose, does nothing twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from partway.arms import deriving, rounds
from partway.arms.arms import Arm
from partway.arms.experiment import Experiment
from partway.arms.outcomes import Outcome, Spent
from partway.arms.selecting import Contender, best, choices
from partway.arms.trials import Problems, Stage, Tell, Trial
from partway.errors import RunError
from partway.language.named import settings_of
from partway.problem import Problem
from partway.runs import Run


def run_arm(experiment: Experiment, arm: Arm, seed: int, directory: Path, tell: Tell) -> Outcome:
    """Train one arm and measure it on the test problems; what is finished already is not done again.

    An arm that takes another one's model finds it trained.
    """
    trial = Trial(experiment, arm, seed, directory, tell)
    problems = experiment.problems(seed)
    problems["train"] = experiment.seen_by(arm, problems["train"])
    run, spent = trained(trial, problems) if arm.trains else taken(trial, problems)
    if arm.trains:
        assert run is not None, "an arm that trains has a run"
        candidates = checkpoints(trial, run, problems["test"])
        default = candidates[-1]
    else:
        candidates, default = deriving.candidates(trial, run, problems)
    tables = choices(
        candidates,
        default,
        experiment.metrics,
        selects=experiment.selects,
        measures_all=experiment.measures_all,
    )
    measured_on = tuple(sorted(problem.id for problem in problems["test"]))
    return Outcome(arm, seed, run, tables, spent, measured_on)


def taken(trial: Trial, problems: Problems) -> tuple[Run | None, Spent]:
    """The run whose model is taken, and what it spent; of an ensemble also its second model is trained."""
    if (parent := trial.parent) is None:
        return None, Spent()
    if trial.arm.method != "ensemble":
        return parent.run, spent_by(parent)
    train(parent.twin, parent.twin.run, problems, own_rate(parent, problems, {}))
    return parent.run, spent_by(parent) + Spent.of(parent.twin.run)


def spent_by(trial: Trial) -> Spent:
    """What a trained arm spent: on the arm it samples from, its rounds, its run, trials of the first seed."""
    before = Spent() if trial.parent is None else spent_by(trial.parent)
    is_first = trial.seed == trial.experiment.seeds[0]
    trials = [Spent.of(run) for run in trial.trials().values()] if is_first else []
    return sum(trials, before + rounds.spent(trial) + Spent.of(trial.run))


def trained(trial: Trial, problems: Problems) -> tuple[Run, Spent]:
    """The arm's finished run, made or completed where it is not finished, and what it spent."""
    if trial.arm.method == "rounds":
        model = trial.experiment.model if trial.parent is None else str(trial.parent.run.final)
        for number in range(1, trial.arm.rounds + 1):
            # Samples of the latest model, but training from the first weights: `train` loads those.
            learned, settings = rounds.prepared(trial, number, model, problems["train"])
            run = trial.round(number)
            if number == 1:
                rate = own_rate(trial, {**problems, "train": learned}, settings)
            train(trial, run, {**problems, "train": learned}, settings | rate)
            model = str(run.final)
    else:
        train(trial, trial.run, problems, own_rate(trial, problems, {}))
    return trial.run, spent_by(trial)


def own_rate(trial: Trial, problems: Problems, of_round: Mapping[str, Any]) -> dict[str, float]:
    """The learning rate that dev chose for the arm, if several are tried; the first seed tries for all."""
    short = dict.fromkeys(("max_steps", "eval_steps", "save_steps"), trial.experiment.trial_steps)
    tried = trial.trials()
    if trial.seed == trial.experiment.seeds[0]:
        for rate, run in tried.items():
            train(trial, run, problems, {**of_round, **short, "learning_rate": rate})
    candidates = [
        Contender(repr(rate), on_dev(run.evaluations()[run.last_step()]), dict) for rate, run in tried.items()
    ]
    return {"learning_rate": float(best(candidates, trial.experiment.selects).name)} if candidates else {}


def train(trial: Trial, run: Run, problems: Problems, of_round: Mapping[str, Any]) -> None:
    """Fine-tune the common model as the arm says, unless that was done."""
    from partway.tracking.display import Relay
    from partway.training import SelfSamplingTrainer

    config = trial.experiment.training_config(trial.arm, trial.seed, run.directory, of_round)
    if run.is_finished:
        check_same(run, config.settings | settings_of(config.built_language), problems["train"])
        return
    relay = Relay(lambda done, total, text: trial.tell(Stage("training", done, total, text)))
    trainer = SelfSamplingTrainer(
        trial.experiment.model, config, problems["train"], problems["dev"], callbacks=[relay]
    )
    trainer.train(resume_from_checkpoint="auto")  # killed before its first checkpoint, it begins again


def check_same(run: Run, settings: Mapping[str, Any], train: Sequence[Problem]) -> None:
    """Refuse a finished run of other settings or with other references in the place of this one."""
    from partway.training.resuming import FREE_SETTINGS, changes

    # The batch is part of the budget here; the path of a round's solutions says nothing about them.
    free = FREE_SETTINGS - {"per_device_train_batch_size"} | {"buffer_file"}
    differences = [told for key, told in changes(run.config, settings).items() if key not in free]
    if differences:
        raise RunError(
            f"{run.directory}: made by a comparison with other settings ({differences[0]}); "
            "choose another --out"
        )
    seen = {problem.id: problem.reference for problem in train}
    if any(seen.get(problem.id) != problem.reference for problem in run.problems()):
        raise RunError(f"{run.directory}: made by a comparison with other references; choose another --out")


def on_dev(summary: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of an evaluation."""
    return {name: row["value"] for name, row in summary["metrics"].items()}


def checkpoints(trial: Trial, run: Run, test: Sequence[Problem]) -> list[Contender]:
    """The checkpoints of a run, the last step's last; the chosen one is the final model."""
    evaluations, final = run.evaluations(), run.final_step
    plan = trial.plan(trial.experiment.test_samples)
    return [
        Contender(
            f"step {step}",
            on_dev(summary),
            partial(
                trial.measured,
                trial.engine(run.final if step == final else run.checkpoint(step)),
                run.evaluation_file("test" if step == final else f"test-{step}"),
                test,
                plan,
            ),
        )
        for step, summary in sorted(evaluations.items())
    ]
