"""Arms without training of their own: dev chooses among mixes and temperatures, test is asked of one."""

import pytest
from training_cases import apples

from partway.arms import deriving, running, trials
from partway.arms.arms import Arm, shipped_arms
from partway.arms.experiment import SHARES, TEMPERATURES, Experiment
from partway.arms.outcomes import Spent
from partway.arms.selecting import LAST, SELECTED, choices
from partway.arms.trials import Trial
from partway.models.engine import Engine, SamplingSettings
from partway.runs import Run
from partway.sample import Request
from partway.solution import EMPTY

PROBLEMS = dict(zip(("train", "dev", "test"), [[problem] for problem in apples(3)], strict=True))


@pytest.fixture
def asked(monkeypatch):
    """What is measured, in order: the model, the split, the plan; the second candidate is best on dev."""
    asked = []

    def measured(trial, load, summary, problems, plan):
        [split] = [name for name, given in PROBLEMS.items() if given == problems]
        asked.append((load(), split, plan))
        score = float(len(asked) == 2)
        return {"pass@1": [score], "pass@20": [score]}

    monkeypatch.setattr(Trial, "measured", measured)
    for module in (deriving, trials):
        monkeypatch.setattr(
            module, "loaded", lambda name, dtype=None: f"{name} {dtype}" if dtype else str(name)
        )
        monkeypatch.setattr(module, "sampling", lambda load: load())
    monkeypatch.setattr("partway.arms.mixing.mixed", lambda *models_and_share: models_and_share)
    return asked


def chosen(arm: Arm, tmp_path, run: Run | None, **settings):
    experiment = Experiment((arm,), model="first", **settings)
    trial = Trial(experiment, arm, 0, tmp_path, lambda stage: None)
    candidates, default = deriving.candidates(trial, run, PROBLEMS)
    return choices(candidates, default, ["pass@1"], measures_all=True)


def test_mixes_are_chosen_on_dev_and_half_and_half_is_what_one_has_unchosen(asked, tmp_path):
    run = Run(tmp_path / "tuned")
    tables = chosen(shipped_arms()["wise-mle"], tmp_path, run)
    on_dev = [model for model, split, _ in asked if split == "dev"]
    assert on_dev == [("first", str(run.final), share) for share in SHARES]
    assert (tables[SELECTED].chosen, tables[LAST].chosen) == ("mix 0.25", "mix 0.5")
    assert [model[2] for model, split, _ in asked if split == "test"] == [0.25, 0.5, 0.25]
    assert all(plan.settings.temperature == 0.8 and plan.pass1_samples == 1 for _, _, plan in asked)


def test_temperatures_are_chosen_on_dev_also_for_pass_1(asked, tmp_path):
    run = Run(tmp_path / "tuned")
    tables = chosen(shipped_arms()["mle-temperature"], tmp_path, run)
    assert [plan.settings.temperature for _, split, plan in asked if split == "dev"] == list(TEMPERATURES)
    assert (tables[SELECTED].chosen, tables[LAST].chosen) == ("T=0.4", "T=0.8")
    assert [plan.settings.temperature for _, split, plan in asked if split == "test"] == [0.4, 0.8, 0.4]
    assert all(model == str(run.final) and plan.pass1_samples == 0 for model, _, plan in asked)


def test_a_comparison_may_name_its_temperatures_and_the_type_of_the_weights_that_draw(asked, tmp_path):
    arm = shipped_arms()["mle-temperature"]
    tables = chosen(arm, tmp_path, Run(tmp_path / "tuned"), temperatures=[0.9, 1.5, 2.0], dtype="bfloat16")
    assert (tables[SELECTED].chosen, tables[LAST].chosen) == ("T=1.5", "T=0.9")
    assert {model for model, _, _ in asked} == {f"{Run(tmp_path / 'tuned').final} bfloat16"}


def test_the_untrained_arm_is_the_first_model_itself(asked, tmp_path):
    tables = chosen(Arm("untrained", "Untrained", method="untrained"), tmp_path, None)
    assert tables[SELECTED].chosen == tables[LAST].chosen == "first weights"
    assert {model for model, _, _ in asked} == {"first"}
    assert {(split, plan.samples) for _, split, plan in asked} == {("dev", 20), ("test", 100)}


def test_an_ensemble_draws_half_of_the_samples_from_each_of_two_trainings_on_the_same_problems(
    asked, tmp_path, monkeypatch
):
    arms = shipped_arms()
    experiment = Experiment((arms["mle"], arms["mle-twice"]), seeds=(3,), model="first")
    trial = Trial(experiment, arms["mle-twice"], 3, tmp_path, lambda stage: None)
    trained = []
    monkeypatch.setattr(running, "train", lambda of, run, problems, own: trained.append((of, problems)))
    monkeypatch.setattr(Spent, "of", lambda run: Spent(steps=100))
    run, spent = running.taken(trial, PROBLEMS)
    [(twin, problems)] = trained
    assert (twin.arm, twin.seed, problems) == (arms["mle"], 1_003, PROBLEMS)
    assert (run, spent.steps) == (Run(tmp_path / "mle-seed3"), 200)
    candidates, default = deriving.candidates(trial, run, PROBLEMS)
    tables = choices(candidates, default, ["pass@1"], measures_all=False)
    assert tables[SELECTED].chosen == "two models"
    assert asked[0][0].engines == [str(run.final), str(twin.run.final)]


def test_engines_together_draw_equal_shares_of_every_request():
    seeds = []

    class Counting(Engine):
        def complete(self, requests, settings, seed):
            seeds.append(seed)
            return [[request.sample("answer = 1", request.count)] for request in requests]

    requests = [Request(problem, EMPTY, count) for problem, count in zip(apples(3), (20, 5, 1), strict=True)]
    drawn = deriving.Together([Counting(), Counting()]).complete(requests, SamplingSettings(), 0)
    assert [[sample.count for sample in samples] for samples in drawn] == [[10, 10], [3, 2], [1]]
    assert len(set(seeds)) == 2, "of equal models one seed would draw the same samples twice"


def test_chance_has_the_references_that_arms_may_see_and_no_model(asked, tmp_path):
    tables = chosen(shipped_arms()["chance"], tmp_path, None)
    assert tables[SELECTED].chosen == tables[LAST].chosen == "random programs"
    for engine, _, plan in asked:
        assert engine.referenced == PROBLEMS["train"]
        assert plan.pass1_samples == 0, "there is no temperature to lower"
