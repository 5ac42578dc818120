"""Offline rounds train on what their papers say: which right samples, which references."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from training_cases import apples

from partway.arms import rounds, running
from partway.arms.arms import Arm, shipped_arms
from partway.arms.experiment import Experiment
from partway.arms.outcomes import Spent
from partway.arms.rounds import kept_solutions, prepared
from partway.arms.trials import Trial
from partway.evaluation import EvaluationPlan
from partway.evaluation.results import Evaluation
from partway.evaluation.samples import ProblemResult, judge, whole
from partway.files import atomic_writer
from partway.language import PYTHON, trace_all
from partway.runs import read_rows
from partway.solution import Solution
from partway.training.order import BatchOrder

ARMS = shipped_arms()
SOLVED, UNSOLVED = apples(2)
FIRST, SECOND, THIRD = (
    SOLVED.reference.text,
    SOLVED.reference.text.replace("t0 = n0 + n1", "t0 = n1 + n0"),
    SOLVED.reference.text.replace("t0 = n0 + n1", "t0 = n0 + n1 + 0"),
)
WRONG = SOLVED.reference.text.replace("- n2", "+ n2")
DRAWN = [(SECOND, 5), (WRONG, 4), (SECOND.replace(" + ", "+"), 3), (FIRST, 2), (THIRD, 1)]


def trial_of(name: str, directory) -> Trial:
    experiment = Experiment((ARMS[name],), train=200, batch_size=32, steps=200)
    return Trial(experiment, ARMS[name], 0, directory, lambda stage: None)


def judged(problem, drawn):
    traces = trace_all([text for text, _ in drawn])
    pairs = zip(drawn, traces, strict=True)
    return tuple(
        judge(problem, whole(problem.id, text, count), trace, PYTHON) for (text, count), trace in pairs
    )


def direct(problem, drawn) -> list[tuple[str, ...]]:
    """The distinct right ones: parsed, run, compared with the answer, in the order given."""
    right = []
    for text, _ in drawn:
        values = {}
        exec(text, values)
        steps = Solution.parse(text).steps
        if values["answer"] == problem.answer and steps not in right:
            right.append(steps)
    return right


@pytest.mark.parametrize(("name", "count"), [("rft", 3), ("rest-em", 3), ("star", 1)])
def test_the_distinct_right_samples_are_kept(tmp_path, name, count):
    kept = kept_solutions(trial_of(name, tmp_path), SOLVED, judged(SOLVED, DRAWN), PYTHON)
    assert [tuple(one["steps"]) for one in kept] == direct(SOLVED, DRAWN)[:count]


def test_of_too_many_right_samples_some_are_drawn(tmp_path):
    many = [(SOLVED.reference.text.replace("+ n1", f"+ n1 + {n} - {n}"), 1) for n in range(20)]
    kept = kept_solutions(trial_of("rest-em", tmp_path), SOLVED, judged(SOLVED, many), PYTHON)
    assert len({tuple(one["steps"]) for one in kept}) == 10
    assert {tuple(one["steps"]) for one in kept} < set(direct(SOLVED, many))
    assert {tuple(one["steps"]) for one in kept} != set(direct(SOLVED, many)[:10]), "not only the first"
    trial, other = trial_of("rest-em", tmp_path), replace(SOLVED, id="other")
    assert kept_solutions(trial, SOLVED, judged(SOLVED, many), PYTHON) == kept, "the same every time"
    assert kept_solutions(replace(trial, seed=1), SOLVED, judged(SOLVED, many), PYTHON) != kept
    assert kept_solutions(trial, other, judged(other, many), PYTHON) != kept


@pytest.mark.parametrize(
    ("name", "solved", "unsolved"), [("rft", True, True), ("rest-em", False, False), ("star", False, True)]
)
def test_references_are_learned_as_the_arm_says(tmp_path, name, solved, unsolved):
    trial = trial_of(name, tmp_path)
    wrong = [(UNSOLVED.reference.text.replace("- n2", "+ n2"), 15)]
    results = (
        ProblemResult(SOLVED.id, judged(SOLVED, DRAWN), ()),
        ProblemResult(UNSOLVED.id, judged(UNSOLVED, wrong), ()),
    )
    plan = EvaluationPlan(samples=15, pass1_samples=0)
    Evaluation.of(results, plan).write(trial.round_file(1, ".json"), expand=False)
    with atomic_writer(trial.round_file(1, "-spent.json")) as stream:
        stream.write("{}")
    problems, settings = prepared(trial, 1, "no model is needed", [SOLVED, UNSOLVED])
    assert [problem.reference is not None for problem in problems] == [solved, unsolved]
    rows = {row["id"]: row["solutions"] for row in read_rows(trial.round_file(1, "-solutions.jsonl"))}
    assert rows[SOLVED.id]
    assert not rows[UNSOLVED.id]
    steps = 200 // trial.arm.rounds
    config = trial.experiment.training_config(trial.arm, 0, tmp_path, settings)
    assert (config.max_steps, config.warmup_steps) == (steps, min(20, steps // 5))
    slow = replace(trial.experiment, settings={"warmup_steps": 3})
    assert slow.training_config(trial.arm, 0, tmp_path, settings).warmup_steps == 3, "as the settings say"
    assert settings["buffer_file"] == str(trial.round_file(1, "-solutions.jsonl"))
    assert settings["eval_steps"] == settings["save_steps"] == min(trial.experiment.eval_steps, steps)
    short = replace(trial, experiment=replace(trial.experiment, steps=20))
    _, settings = prepared(short, 1, "no model is needed", [SOLVED, UNSOLVED])
    steps = 20 // trial.arm.rounds
    assert (settings["eval_steps"], settings["save_steps"]) == (steps, steps), (
        "a round is measured at its end"
    )


def test_every_round_samples_with_the_model_before_it_and_trains_from_the_first_weights(
    tmp_path, monkeypatch
):
    sampled, begun = [], []

    class Trainer:
        def __init__(self, model, config, train, dev, callbacks):
            begun.append((model, config.output_dir))
            assert train == ["learned"]

        def train(self, resume_from_checkpoint):
            pass

    def sampled_with(trial, number, model, problems):
        sampled.append(model)
        return ["learned"], {}

    monkeypatch.setattr("partway.training.SelfSamplingTrainer", Trainer)
    monkeypatch.setattr(rounds, "prepared", sampled_with)
    monkeypatch.setattr(rounds, "spent", lambda trial: Spent(samples=1))
    monkeypatch.setattr(Spent, "of", lambda run: Spent(steps=2))
    trial = trial_of("star", tmp_path)
    run, spent = running.trained(trial, {"train": [], "dev": []})
    runs = [trial.round(number) for number in (1, 2, 3, 4)]
    assert sampled == [trial.experiment.model, *(str(run.final) for run in runs[:3])]
    assert begun == [(trial.experiment.model, str(run.directory)) for run in runs]
    assert (run, spent) == (runs[-1], Spent(steps=2, samples=1))
    rft = Arm("rft-of-mle", "RFT", method="rounds", of="mle")
    experiment = Experiment((shipped_arms()["mle"], rft))
    trial = Trial(experiment, rft, 0, tmp_path, lambda stage: None)
    _, spent = running.trained(trial, {"train": [], "dev": []})
    assert trial.parent is not None
    assert sampled[-1] == str(trial.parent.run.final), "the first round may have the samples of another arm"
    assert begun[-1] == (experiment.model, str(trial.run.directory))
    assert spent == Spent(steps=4, samples=2), "what the other arm took is counted"


@pytest.mark.parametrize(("name", "temperature"), [("rft", 0.7), ("star", 0.2)])
def test_a_round_draws_at_the_arms_temperature(tmp_path, monkeypatch, name, temperature):
    plans, loaded = [], []

    def drawn(trial, sampler, summary, problems, plan):
        plans.append(plan)
        result = ProblemResult(SOLVED.id, judged(SOLVED, [(FIRST, plan.samples)]), ())
        Evaluation.of((result,), plan).write(summary)

    monkeypatch.setattr(Trial, "draw", drawn)
    codec = SimpleNamespace(encode=list)  # a token a character
    monkeypatch.setattr(rounds, "loaded", lambda *of: loaded.append(of) or SimpleNamespace(codec=codec))
    monkeypatch.setattr(rounds, "sampling", lambda load: load())
    trial = trial_of(name, tmp_path)
    trial = replace(trial, experiment=replace(trial.experiment, dtype="bfloat16"))
    result = ProblemResult(SOLVED.id, judged(SOLVED, [(FIRST, 1)]), ())  # of a start that was interrupted
    Evaluation.of((result,), EvaluationPlan(samples=1)).write(trial.round_file(1, ".json"))
    for _ in range(2):  # the second time all is there
        prepared(trial, 1, "a model", [SOLVED])
    (plan,) = plans
    assert loaded == [("a model", "bfloat16")]
    count = trial.experiment.samples_per_round(trial.arm)
    assert (plan.settings.temperature, plan.samples, plan.pass1_samples) == (temperature, count, 0)
    spent = json.loads(trial.round_file(1, "-spent.json").read_text(encoding="utf-8"))
    # The token that ends a sample was drawn, too.
    assert (spent["samples"], spent["tokens_sampled"]) == (count, count * (len(FIRST) + 1))


def test_what_rounds_sampled_is_part_of_what_they_spent(tmp_path, monkeypatch):
    runs = []
    monkeypatch.setattr(Spent, "of", lambda run: runs.append(run) or Spent(steps=2))
    trial = trial_of("rest-em", tmp_path)
    for number in (1, 2):
        with atomic_writer(trial.round_file(number, "-spent.json")) as stream:
            stream.write('{"samples": 5}')
    assert rounds.spent(trial) == Spent(steps=2, samples=10), "the last round's steps are the arm's own run"
    assert runs == [trial.round(1)]


def test_rounds_draw_as_many_samples_as_the_others(tmp_path):
    for name in ("rft", "rest-em", "star"):
        trial = trial_of(name, tmp_path)
        drawn = trial.experiment.samples_per_round(trial.arm) * trial.arm.rounds * 200
        assert 0 <= trial.experiment.samples - drawn < trial.arm.rounds * 200
        assert trial.experiment.remarks() == [
            f"{trial.arm.label} draws {drawn:,} samples, as many of each problem; the budget is 5,728"
        ]
        assert replace(trial.experiment, train=192, steps=24).remarks() == []


def test_the_budget_is_what_batches_really_hold():
    order = BatchOrder(200, 32, seed=0)
    plain = Experiment((ARMS["fcs"],))
    assert plain.samples == sum(len(order.batch(step)) for step in range(200)) == 5_728
    assert plain.remarks() == []
    assert "with --train 192 all draw the same" in Experiment((ARMS["fcs"], ARMS["grpo"])).remarks()[0]
    equal = Experiment((ARMS["fcs"], ARMS["grpo"]), train=192)
    assert (equal.samples, equal.remarks()) == (6_400, [])
