"""Arms and the rules by which their models are chosen."""

import random
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from evaluation_cases import DiceEngine, problems
from training_cases import apples

from partway.arms import outcomes, running
from partway.arms.arms import SHIPPED, Arm, load_arms, read_arm, shipped_arms
from partway.arms.compare import show_comparison
from partway.arms.experiment import Experiment
from partway.arms.outcomes import Outcome, Spent, buffer_sizes, gains, mean_spent, means, to_json
from partway.arms.selecting import BEST_PER_K, LAST, SELECTED, Choice, Contender, choices
from partway.arms.side_by_side import _waits, arms_at_once, cells_of
from partway.arms.tables import all_tables, headline, scores_table, to_markdown
from partway.arms.trials import Trial
from partway.cli.parallel import cores
from partway.errors import ConfigError, ProblemError, RunError
from partway.runs import Run


def candidate(name: str, measured: list[str], **dev: float) -> Contender:
    def measure():
        measured.append(name)
        return {"pass@1": [dev["one"]], "pass@100": [dev["many"]], "unique": [0.5]}

    return Contender(name, {"pass@1": dev["one"], "pass@20": dev["many"]}, measure)


def test_the_selected_model_is_best_at_pass_1_and_of_equal_ones_at_the_largest_k():
    measured = []
    steps = [("step 1", 0.2, 0.9), ("step 2", 0.3, 0.7), ("step 3", 0.3, 0.5), ("step 4", 0.1, 0.6)]
    candidates = [candidate(name, measured, one=one, many=many) for name, one, many in steps]
    tables = choices(candidates, candidates[-1], ("pass@1", "pass@100"), measures_all=True)
    assert tables[SELECTED].chosen == "step 2"
    assert tables[LAST].chosen == "step 4"
    assert tables[BEST_PER_K].chosen == "step 2, step 1"
    assert tables[BEST_PER_K].scores == {"pass@1": [0.3], "pass@100": [0.9]}
    assert set(measured) == {"step 1", "step 2", "step 4"}, "what no table shows is not measured"


def test_without_the_other_tables_only_the_selected_model_is_measured():
    measured = []
    candidates = [candidate(name, measured, one=0.2, many=0.2) for name in ("step 1", "step 2")]
    assert list(choices(candidates, candidates[-1], ("pass@1",), measures_all=False)) == [SELECTED]
    assert measured == ["step 2"], "of equal ones the later"


def test_what_came_out_is_told_first_in_words_and_differences_have_their_sign():
    arms = shipped_arms()
    experiment = Experiment(tuple(arms[name] for name in ("mle", "fcs", "fcs+pcs")), test_samples=5)
    solved = {"mle": [1.0, 0.0, 0.0, 0.0], "fcs": [1.0, 1.0, 1.0, 1.0], "fcs+pcs": [1.0, 1.0, 0.0, 0.0]}
    outcomes = [
        outcome(arms[name], seed=0, scores=dict.fromkeys(experiment.metrics, one))
        for name, one in solved.items()
    ]
    best, second = headline(experiment, outcomes)
    assert best.startswith("FCS: pass@1 is 100.0%, 75.0 points higher than with MLE (95% interval +")
    assert " pass@5 is 100.0%, 75.0 points higher than with MLE (95% interval +" in best
    assert second.startswith("FCS+PCS: pass@1 is 50.0%, 25.0 points higher than with MLE (95% interval ")
    assert second.endswith("The interval includes 0: these runs do not show which of the two is better.")
    table = scores_table(experiment, outcomes, SELECTED)
    assert table.columns[-1].shown(table.rows[1][-1].value) == "+75.0"


def test_words_tell_of_few_samples_and_leave_ceiling_and_floors_to_the_table():
    arms = load_arms(["mle", "oracle", "base", "chance", "fcs"])
    experiment = Experiment(arms, references=16, test_samples=20)
    scores = {name: [1.0, 0.0, 0.0, 1.0] for name in experiment.metrics}
    _, told = headline(experiment, [outcome(arm, seed=0, scores=scores) for arm in arms])
    assert re.findall(r"pass@\d+", told) == ["pass@1", "pass@10"]
    assert told.startswith("FCS: ")


def test_tables_of_a_comparison_are_not_cut_at_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    arms = load_arms(["mle", "fcs+pcs", "oracle", "base", "chance"])
    experiment = Experiment(arms, references=16, test_samples=20)
    scores = {name: [0.5, 0.25, 0.0, 1.0] for name in (*experiment.metrics, "unique")}
    spent = Spent(30, 3_840, 100_398, 39_212, 282.0)
    chosen = {SELECTED: Choice("first weights", scores)}
    show_comparison(experiment, [Outcome(arm, 0, None, chosen, spent, tuple("abcd")) for arm in arms])
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "references" in shown.split("What an arm spends")[1].split("selected:")[0], "a word is not broken"


def outcome(arm, seed, scores, measured_on=tuple("abcd")) -> Outcome:
    return Outcome(arm, seed, None, {SELECTED: Choice("step 1", scores)}, Spent(), measured_on)


def test_seeds_with_the_same_problems_know_less_than_seeds_with_their_own():
    arm, rng = shipped_arms()["mle"], random.Random(1)
    scores = [{"pass@1": [float(rng.random() < 0.3) for _ in range(200)]} for _ in range(2)]
    less = [outcome(arm, seed, {"pass@1": [0.0] * 200}) for seed in range(2)]
    own, same = (
        [
            outcome(arm, seed, of_seed, measured_on=tuple(f"{ids}{n}" for n in range(200)))
            for seed, (ids, of_seed) in enumerate(zip(names, scores, strict=True))
        ]
        for names in ("ab", "aa")
    )
    twice = [replace(same[0], seed=seed) for seed in range(2)]
    alone = means(same[:1])["pass@1"]
    assert width(means(twice)["pass@1"]) == pytest.approx(width(alone), rel=0.01)
    assert width(means(own)["pass@1"]) == pytest.approx(width(alone) / 2**0.5, rel=0.1)
    assert width(gains(twice, less)["pass@1"]) == pytest.approx(width(alone), rel=0.01)
    assert width(gains(own, less)["pass@1"]) == pytest.approx(width(alone) / 2**0.5, rel=0.1)


def test_every_seed_is_shown_by_itself_with_its_interval_over_problems():
    arms, rng = shipped_arms(), random.Random(5)
    experiment = Experiment((arms["mle"], arms["fcs"]), seeds=(3, 7), test_samples=20)
    outcomes = [
        outcome(arm, seed, {name: [rng.random() for _ in range(4)] for name in experiment.metrics})
        for arm in experiment.arms
        for seed in experiment.seeds
    ]
    [table] = [one for one in all_tables(experiment, outcomes) if one.caption.startswith("Every seed")]
    headings = [f"{name}, seed {seed}" for name in ("pass@1", "pass@10") for seed in (3, 7)]
    assert [column.heading for column in table.columns] == ["arm", *headings]
    alone = [means([one])["pass@10"] for one in outcomes[2:]]
    assert table.rows[1][-2:] == alone
    by_seed = to_json(experiment, outcomes)["arms"]["fcs"]["tables"][SELECTED]["by_seed"]
    assert [by_seed[seed]["pass@10"]["low"] for seed in (3, 7)] == [one.low for one in alone]
    single = replace(experiment, seeds=(3,))
    assert not any("seed" in one.caption[:10] for one in all_tables(single, outcomes[::2]))


def test_bold_is_the_best_arm_where_its_interval_is_above_chance():
    arms = shipped_arms()
    experiment = Experiment(
        tuple(arms[name] for name in ("mle", "fcs", "oracle", "chance")), references=10, test_samples=5
    )
    solved = {"mle": (0.2, 0.5), "fcs": (0.3, 0.6), "oracle": (0.9, 0.9), "chance": (0.1, 0.6)}
    outcomes = [
        outcome(
            arms[name],
            seed=0,
            scores={
                metric: [mean - 0.01, mean + 0.01] * 2
                for metric, mean in zip(
                    ("pass@1", "pass@5", "true_pass@1", "true_pass@5"), two * 2, strict=True
                )
            },
        )
        for name, two in solved.items()
    ]
    scored, true, _ = all_tables(experiment, outcomes)
    assert scored.marks == true.marks == {(1, 1): "best"}, "not at k=5, where random programs do as well"
    assert [column.heading for column in true.columns] == ["arm", "true pass@1", "true pass@5"]
    assert "| **30.0 (" in to_markdown(scored)
    none = replace(experiment, arms=experiment.arms[:3])
    assert not scores_table(none, outcomes[:3], SELECTED).marks, "without chance nobody knows"


def width(estimate) -> float:
    return estimate.high - estimate.low


def test_every_shipped_arm_says_where_it_is_from():
    arms = shipped_arms()
    assert {"mle", "fcs", "fcs+pcs"} <= arms.keys()
    assert [name for name, arm in arms.items() if not arm.source or arm.label == name] == []
    assert len({arm.label for arm in arms.values()}) == len(arms)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_settings_of_every_shipped_arm_are_settings_of_training(path, tmp_path):
    from partway.arms.experiment import Experiment

    arm = read_arm(path)
    experiment = Experiment((arm,), references=10)
    config = experiment.training_config(arm, 0, tmp_path)
    assert {key: getattr(config, key) for key in arm.settings} == dict(arm.settings)
    assert config.problems_per_step * config.num_generations == experiment.batch_size
    assert config.solved_share == (1.0 if config.self_sampling == "none" and arm.trains else 0.5)


def test_an_arm_cannot_set_what_the_comparison_gives_to_all():
    with pytest.raises(ConfigError, match="num_generations belongs to the comparison"):
        Arm("greedy", "Greedy", settings={"num_generations": 8})


def test_two_arms_of_one_name_are_refused(tmp_path):
    (tmp_path / "mle.yaml").write_text("label: other\n")
    with pytest.raises(ConfigError, match="two different arms are called mle"):
        load_arms(["mle", "./mle.yaml"], tmp_path)


def test_arms_share_cores_but_not_a_gpu(monkeypatch):
    for count, expected in ((0, cores()), (1, 1)):
        monkeypatch.setattr("torch.accelerator.device_count", lambda found=count: found)
        assert arms_at_once() == expected


def test_few_references_are_the_same_for_all_arms_but_the_ceiling():
    arms = load_arms(["mle", "rft", "fcs", "oracle", "chance"])
    experiment = Experiment(arms, train=40, references=10)
    train = apples(40)
    seen = {arm.name: experiment.seen_by(arm, train) for arm in arms}
    for name, of_arm in seen.items():
        assert [problem.id for problem in of_arm] == [problem.id for problem in train]
        given = [problem.reference for problem in of_arm]
        known = [problem.reference for problem in train]
        assert given == (known if name == "oracle" else known[:10] + [None] * 30)
    assert any("10 of 40 training problems keep theirs" in rule for rule in experiment.rules())


def test_every_arm_draws_the_same_number_of_samples_from_mixed_data(tmp_path):
    experiment = Experiment(load_arms(["fcs", "grpo"]), train=40, references=10, num_generations=4, steps=7)
    for arm in experiment.arms:
        config = experiment.training_config(arm, 0, tmp_path)
        assert config.problems_per_step * config.num_generations == 32 * 4
    assert experiment.samples == 7 * 32 * 4, "mixed batches are full, also where an epoch's last would not be"
    assert experiment.remarks() == []


@pytest.mark.parametrize(
    ("names", "settings", "complaint"),
    [
        (["oracle"], {}, "arm oracle learns the references that the others do not see, but all arms see all"),
        (["mle"], {"references": 300}, "references is 300, expected 0 to 200"),
        (["mle"], {"selects": "pass@50"}, "selects is 'pass@50', which evaluations on dev do not give"),
        (["mle"], {"learning_rates": {"mlee": 1e-4}}, "'mlee', which is not an arm; did you mean 'mle'"),
        (
            ["mle"],
            {"learning_rates": [1e-4], "settings": {"learning_rate": 1e-3}},
            "settings of all arms: learning_rate takes the place of learning_rates",
        ),
        (["star"], {"steps": 3}, "arm star divides 3 steps among 4 rounds"),
        (["mle"], {"learning_rates": [0.0]}, "learning_rates has 0.0, expected numbers above 0"),
        (
            ["mle"],
            {"settings": {"max_steps": 3}},
            "settings of all arms: max_steps belongs to the comparison",
        ),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused(names, settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        Experiment(load_arms(names), **settings)


def test_more_references_than_there_are_is_a_mistake():
    experiment = Experiment(load_arms(["mle"]), train=40, references=30)
    few = experiment.seen_by(experiment.arms[0], apples(40))
    with pytest.raises(ProblemError, match="references is 35, but 30 of 40 training problems have one"):
        replace(experiment, references=35).seen_by(experiment.arms[0], few)


def test_every_arm_takes_the_learning_rate_that_its_trials_with_the_first_seed_have_best_on_dev(
    tmp_path, monkeypatch
):
    arms = shipped_arms()
    experiment = Experiment(
        (arms["mle"], arms["grpo"]), seeds=(4, 5), learning_rates=[1e-4, 1e-3], selects="pass@5"
    )
    dev = {  # by arm and rate: pass@1, pass@5; the last number decides where the one before is equal
        "mle-seed4-rate0.0001": (0.9, 0.2),
        "mle-seed4-rate0.001": (0.1, 0.3),
        "grpo-seed4-rate0.0001": (0.1, 0.3),
        "grpo-seed4-rate0.001": (0.9, 0.2),
    }
    trained = []

    def summary(run):
        one, five = dev[run.directory.name]
        return {40: {"metrics": {"pass@1": {"value": one}, "pass@5": {"value": five}}}}

    monkeypatch.setattr(Run, "evaluations", summary)
    monkeypatch.setattr(Run, "last_step", lambda run: 40)
    monkeypatch.setattr(Spent, "of", lambda run: Spent(steps=40 if "rate" in run.directory.name else 200))
    monkeypatch.setattr(running, "train", lambda trial, run, problems, own: trained.append((run, own)))
    spent = {}
    for arm in experiment.arms:
        for seed in experiment.seeds:
            trial = Trial(experiment, arm, seed, tmp_path, lambda stage: None)
            spent[arm.name, seed] = running.trained(trial, {})[1].steps
    own = {run.directory.name: settings for run, settings in trained}
    assert [name for name in own if "rate" in name] == list(dev), "the second seed tries nothing"
    assert {own[name]["max_steps"] for name in dev} == {experiment.trial_steps}
    assert [own[name]["learning_rate"] for name in dev] == [1e-4, 1e-3] * 2
    for seed in (4, 5):
        assert own[f"mle-seed{seed}"] == {"learning_rate": 1e-3}
        assert own[f"grpo-seed{seed}"] == {"learning_rate": 1e-4}
    assert spent == {("mle", 4): 280, ("mle", 5): 200, ("grpo", 4): 280, ("grpo", 5): 200}
    assert any("of 0.0001, 0.001, each tried for 40 steps with seed 4" in rule for rule in experiment.rules())
    waits = [_waits(experiment, arm, seed) for arm, seed in cells_of(experiment)]
    assert waits == [(0, False)] * 2 + [(0, True)] * 2, "the second seed waits for the trials"


def test_an_arm_waits_for_all_arms_that_it_stands_on():
    mle, rft = Arm("mle", "MLE"), Arm("rft", "RFT", method="rounds", of="mle")
    hot = Arm("hot", "RFT, temperature", method="temperatures", of="rft")
    experiment = Experiment((hot, rft, mle))
    assert [_waits(experiment, arm, 0)[0] for arm in experiment.arms] == [2, 1, 0]


def test_what_an_arm_spent_is_part_of_what_those_spent_that_stand_on_it(tmp_path, monkeypatch):
    mle, rft = Arm("mle", "MLE"), Arm("rft", "RFT", method="rounds", of="mle")
    hot = Arm("hot", "RFT, temperature", method="temperatures", of="rft")
    experiment = Experiment((mle, rft, hot))
    monkeypatch.setattr(Spent, "of", lambda run: Spent(steps=100))
    monkeypatch.setattr(running.rounds, "spent", lambda trial: Spent(samples=7 * (trial.arm == rft)))
    monkeypatch.setattr(running.rounds, "prepared", lambda trial, number, model, train: (train, {}))
    monkeypatch.setattr(running, "train", lambda trial, run, problems, own: None)
    of_rft = running.trained(Trial(experiment, rft, 0, tmp_path, print), {"train": []})[1]
    of_hot = running.taken(Trial(experiment, hot, 0, tmp_path, print), {"train": []})[1]
    assert of_rft == of_hot == Spent(steps=200, samples=7)


def test_trials_of_rounds_learn_what_the_first_round_learns_and_every_round_has_the_rate_they_chose(
    tmp_path, monkeypatch
):
    arm = shipped_arms()["rest-em"]
    experiment = Experiment((arm,), learning_rates=[1e-4, 1e-3], trial_steps=30)
    trained = []

    def summary(run):
        one = float(run.directory.name.endswith("-rate0.001"))
        return {30: {"metrics": {"pass@1": {"value": one}, "pass@20": {"value": one}}}}

    monkeypatch.setattr(Run, "evaluations", summary)
    monkeypatch.setattr(Run, "last_step", lambda run: 30)
    monkeypatch.setattr(Spent, "of", lambda run: Spent())
    monkeypatch.setattr(running.rounds, "spent", lambda trial: Spent())
    monkeypatch.setattr(
        running.rounds,
        "prepared",
        lambda trial, number, model, train: (
            [f"found in {number}"],
            {"max_steps": 100, "buffer_file": number},
        ),
    )
    monkeypatch.setattr(
        running,
        "train",
        lambda trial, run, problems, own: trained.append((run.directory.name, problems["train"], own)),
    )
    running.trained(Trial(experiment, arm, 0, tmp_path, print), {"train": []})
    trials, rounds = trained[:2], trained[2:]
    assert [name for name, _, _ in trials] == ["rest-em-seed0-rate0.0001", "rest-em-seed0-rate0.001"]
    for (_, learned, own), rate in zip(trials, (1e-4, 1e-3), strict=True):
        assert learned == ["found in 1"]
        assert (own["buffer_file"], own["max_steps"], own["learning_rate"]) == (1, 30, rate)
        config = experiment.training_config(arm, 0, tmp_path, own | {"buffer_file": None})
        assert config.warmup_steps == 6, "a fifth of their own steps"
    for number, (_, learned, own) in enumerate(rounds, start=1):
        assert learned == [f"found in {number}"]
        assert own == {"max_steps": 100, "buffer_file": number, "learning_rate": 1e-3}


def test_what_a_run_spent_is_sampling_running_and_learning_without_evaluations(tmp_path, monkeypatch):
    work = {
        "exploring": SimpleNamespace(samples=3, tokens=50, seconds=1.0),
        "executing": SimpleNamespace(samples=3, tokens=None, seconds=10.0),
        "learning": SimpleNamespace(samples=None, tokens=700, seconds=100.0),
        "evaluating": SimpleNamespace(samples=9, tokens=99, seconds=1000.0),
    }
    monkeypatch.setattr(outcomes, "work_of", lambda run, curves: work)
    monkeypatch.setattr(Run, "metrics", lambda run: [])
    monkeypatch.setattr(Run, "last_step", lambda run: 8)
    assert Spent.of(Run(tmp_path)) == Spent(8, 3, 50, 700, 111.0)


def test_what_an_arm_spent_is_a_mean_over_seeds_and_shown_in_minutes():
    arm = shipped_arms()["mle"]
    experiment = Experiment((arm,), seeds=(0, 1), test_samples=5)
    scores = {name: [1.0] for name in experiment.metrics}
    spent = (Spent(10, 20, 301, 40, 60.0), Spent(10, 20, 300, 40, 240.0))
    outcomes = [replace(outcome(arm, 0, scores, ("a",)), seed=seed, spent=spent[seed]) for seed in (0, 1)]
    assert mean_spent(outcomes) == Spent(10, 20, 300, 40, 150.0)
    row = all_tables(experiment, outcomes)[-1].rows[0]
    assert row[1:6] == [10, 20, 300, 40, 2.5]


def test_found_solutions_are_counted_where_none_was_written(tmp_path, monkeypatch):
    written, found, lost = apples(3)
    buffers = {
        problem.id: SimpleNamespace(
            problem=problem, fully_correct=[problem.reference] * count, partially_correct=range(3)
        )
        for problem, count in (
            (written, 2),
            (replace(found, reference=None), 1),
            (replace(lost, reference=None), 0),
        )
    }
    monkeypatch.setattr(Run, "buffers", lambda run: buffers)
    arms = load_arms(["mle", "fcs", "oracle"])
    experiment = Experiment(arms, train=40, references=10, test_samples=5)
    scores = {name: [1.0, 0.0, 1.0] for name in experiment.metrics}
    outcomes = [
        replace(
            outcome(arm, 0, scores, tuple("abc")),
            run=Run(tmp_path),
            spent=Spent(samples=int(arm.name != "mle")),
        )
        for arm in arms
    ]
    assert headline(experiment, outcomes)[:3] == [
        "10 training problems with a written solution, 30 with an answer only.",
        "FCS found solutions of 1 of those.",
        headline(experiment, outcomes)[-1],
    ]
    assert buffer_sizes(outcomes) == (1.0, 3.0)
    alone = to_json(experiment, outcomes)["arms"]["fcs"]
    assert alone["solutions_per_problem"] == {"fcs": 1.0, "pcs": 3.0}


def test_every_table_has_its_own_differences():
    arms = shipped_arms()
    experiment = Experiment((arms["mle"], arms["fcs"]), test_samples=5)
    metrics = experiment.metrics
    tables = {
        "mle": {SELECTED: [0.0, 0.0], LAST: [0.0, 0.0]},
        "fcs": {SELECTED: [1.0, 1.0], LAST: [1.0, 0.0]},
    }
    outcomes = [
        Outcome(
            arms[name],
            0,
            None,
            {table: Choice(table, dict.fromkeys(metrics, scores)) for table, scores in of_arm.items()},
            Spent(),
            tuple("ab"),
        )
        for name, of_arm in tables.items()
    ]
    found = to_json(experiment, outcomes)["arms"]["fcs"]["tables"]
    assert [found[table]["minus_mle"]["pass@5"]["value"] for table in (SELECTED, LAST)] == [1.0, 0.5]


def test_results_of_other_problems_or_of_another_size_are_not_taken_for_these(tmp_path):
    experiment = Experiment(load_arms(["mle"]), test_samples=5)
    trial = Trial(experiment, experiment.arms[0], 0, tmp_path, lambda stage: None)
    file, test, plan = tmp_path / "test.json", problems(3), trial.plan(5)
    assert plan.ks == (1, 5), "as many as there are samples is a k, too"
    scores = trial.measured(DiceEngine, file, test, plan)
    assert trial.measured(no_engine, file, test, plan) == scores, "what is there is not drawn again"
    for others, other_plan in ((problems(2), plan), (test, trial.plan(4)), (test, replace(plan, seed=1))):
        with pytest.raises(RunError, match="made by a comparison of other problems or another size"):
            trial.measured(no_engine, file, others, other_plan)


def no_engine():
    raise AssertionError("nothing is to be drawn")


def test_a_finished_run_of_other_settings_is_refused(tmp_path, monkeypatch):
    arms = load_arms(["mle"])
    experiment = Experiment(arms, train=40)
    made = experiment.training_config(arms[0], 0, tmp_path).settings
    monkeypatch.setattr(Run, "config", made)
    monkeypatch.setattr(Run, "problems", lambda run: apples(2))
    run = Run(tmp_path)
    running.check_same(run, made, apples(2))
    for changed in ({"batch_size": 8}, {"steps": 100}, {"settings": {"temperature": 0.5}}):
        other = replace(experiment, **changed).training_config(arms[0], 0, tmp_path).settings
        with pytest.raises(RunError, match="made by a comparison with other settings"):
            running.check_same(run, other, apples(2))
    with pytest.raises(RunError, match="made by a comparison with other references"):
        running.check_same(run, made, [replace(one, reference=None) for one in apples(2)])


def test_settings_of_all_arms_take_the_place_of_those_for_few_references(tmp_path):
    experiment = Experiment(load_arms(["fcs"]), references=10, settings={"solved_share": 0.25})
    config = experiment.training_config(experiment.arms[0], 0, tmp_path)
    assert (config.solved_share, config.spurious) == (0.25, "drop")


@pytest.mark.parametrize(("name", "known"), [("mle", 10), ("oracle", 40)])
def test_an_arm_learns_what_it_may_see_and_is_measured_on_test_as_dev_chose(
    name, known, tmp_path, monkeypatch
):
    problems = {"train": apples(40), "dev": apples(2, 1), "test": apples(3, 2)}
    learned, measured = [], []

    def trained(trial, given):
        learned.extend(given["train"])
        return Run(tmp_path), Spent()

    def drawn(trial, load, summary, given, plan):
        measured.append((load, summary.name, given))
        return {"pass@1": [1.0]}

    dev = {
        step: {"pass@1": {"value": one}, "pass@5": {"value": five}}
        for step, one, five in ((20, 0.4, 0.9), (40, 0.5, 0.1))
    }
    monkeypatch.setattr(Experiment, "problems", lambda experiment, seed: dict(problems))
    monkeypatch.setattr(running, "trained", trained)
    monkeypatch.setattr(Trial, "measured", drawn)
    monkeypatch.setattr(Trial, "engine", lambda trial, model: model)
    monkeypatch.setattr(Run, "evaluations", lambda run: {step: {"metrics": dev[step]} for step in dev})
    monkeypatch.setattr(Run, "final_step", 40)
    arms = shipped_arms()
    experiment = Experiment((arms[name],), train=40, references=10, selects="pass@5")
    found = running.run_arm(experiment, arms[name], 0, tmp_path, print)
    assert sum(problem.reference is not None for problem in learned) == known
    assert measured == [(Run(tmp_path).checkpoint(20), "test-20.json", problems["test"])]
    assert (found.tables[SELECTED].chosen, found.measured_on) == (
        "step 20",
        tuple(p.id for p in apples(3, 2)),
    )
    running.run_arm(replace(experiment, selects="pass@1"), arms[name], 0, tmp_path, print)
    assert measured[1] == (Run(tmp_path).final, "test.json", problems["test"]), "reports look for this name"


def test_learning_rates_may_be_given_for_each_arm(tmp_path):
    experiment = Experiment(load_arms(["mle", "fcs"]), learning_rates={"fcs": 2e-4})
    rates = [experiment.training_config(arm, 0, tmp_path).learning_rate for arm in experiment.arms]
    assert rates == [experiment.learning_rate, 2e-4]
    assert "learning rate: fcs 0.0002; 0.0005 for arms that set none themselves" in experiment.rules()
    assert not any(map(experiment.tried, experiment.arms))
    own = Arm("own", "Own", settings={"learning_rate": 2e-3})
    assert not Experiment((own,), learning_rates=[1e-4, 1e-3]).tried(own), "an arm keeps its own"


def test_all_seeds_have_the_same_problems_only_if_asked():
    own, same = (
        [[p.question for p in experiment.problems(seed)["train"]] for seed in experiment.seeds]
        for asked in (False, True)
        for experiment in [Experiment(load_arms(["mle"]), seeds=(3, 4), train=32, same_problems=asked)]
    )
    assert own[0] == same[0] == same[1] != own[1]


def test_the_metric_that_selects_decides_also_where_pass_1_says_otherwise(tmp_path):
    steps = [("step 1", 0.2, 0.9), ("step 2", 0.3, 0.7)]
    candidates = [candidate(name, [], one=one, many=many) for name, one, many in steps]
    tables = choices(candidates, candidates[-1], ("pass@1",), selects="pass@20", measures_all=False)
    assert tables[SELECTED].chosen == "step 1"
    experiment = Experiment(load_arms(["mle"]), selects="pass@5")
    config = experiment.training_config(experiment.arms[0], 0, tmp_path)
    assert config.metric_for_best_model == "pass@5", "the run's final model is chosen alike"
    assert "dev pass@5 (20 samples at T=0.8" in experiment.rules()[0]
