"""Evaluation with a scripted engine: the numbers, their independence of batches, stopping and comparing."""

import json
import sys
from collections import Counter
from dataclasses import replace

import pytest
from evaluation_cases import CRASH, RIGHT, SILENT, WRONG, DiceEngine, problems

from partway.errors import ConfigError, EngineError, ProblemError
from partway.evaluation import (
    Evaluation,
    EvaluationPlan,
    Judged,
    ProblemResult,
    evaluate,
    pass_at_k,
)
from partway.evaluation.results import metric_estimates, score_columns
from partway.evaluation.samples import whole
from partway.language import PythonLanguage


def values(evaluation):
    return {name: estimate.value for name, estimate in evaluation.metrics.items()}


def test_metrics_of_known_samples_are_what_they_should_be():
    samples = (
        Judged(whole("p", "n0 = 6\nanswer = n0", 4), True, "passed", True, "6"),
        Judged(whole("p", "m = 6\nanswer = (m)", 1), True, "passed", True, "6"),
        Judged(whole("p", "m = 6\nanswer = m", 1), True, "passed", True, "6"),
        Judged(whole("p", "answer = 7", 3), False, "failed: wrong answer 7", True, "7"),
        Judged(whole("p", "answer = (", 1), False, "failed: error in step 1: syntax", False, None),
    )
    result = ProblemResult("p", samples, (Judged(whole("p", "answer = 7", 1), False, "failed", True, "7"),))
    scores = result.scores([1, 5])
    assert scores["pass@1"] == 0
    assert scores["pass@1_at_temperature"] == 0.6
    assert scores["pass@5"] == pass_at_k(10, 6, 5)
    assert scores["executable"] == 0.9
    assert [scores[f"unique{way}"] for way in ("", "_canonical", "_alpha")] == [0.5, 0.4, 0.3]


def test_pass_at_1_is_the_share_of_right_ones_among_all_samples_drawn_for_it():
    samples = (Judged(whole("p", "answer = 7", 4), False, "failed", True, "7"),)
    right = Judged(whole("p", "answer = 6", 1), True, "passed", True, "6")
    wrong = Judged(whole("p", "answer = 7", 3), False, "failed", True, "7")
    assert ProblemResult("p", samples, (right, wrong)).scores([1])["pass@1"] == 0.25


def test_true_pass_at_k_counts_no_answer_that_is_right_by_luck():
    samples = (
        Judged(whole("p", "answer = a", 1), True, "passed", True, "6", lucky=False),
        Judged(whole("p", "answer = 6", 5), True, "passed", True, "6", lucky=True),
        Judged(whole("p", "answer = 7", 4), False, "failed", True, "7", lucky=False),
    )
    pass1 = (Judged(whole("p", "answer = 6"), True, "passed", True, "6", lucky=True),)
    scores = ProblemResult("p", samples, pass1).scores([1, 5])
    assert (scores["pass@1"], scores["true_pass@1"]) == (1.0, 0.0)
    assert (scores["pass@1_at_temperature"], scores["true_pass@1_at_temperature"]) == (0.6, 0.1)
    assert (scores["pass@5"], scores["true_pass@5"]) == (pass_at_k(10, 6, 5), pass_at_k(10, 1, 5))
    unknown = (replace(samples[0], lucky=None), *samples[1:])
    assert not any("true" in name for name in ProblemResult("p", unknown, pass1).scores([1, 5]))
    assert [Judged.from_json(one.to_json()) for one in (*samples, *unknown)] == [*samples, *unknown]


def test_every_sample_of_every_problem_counts_whatever_the_batch_size(monkeypatch):
    monkeypatch.setattr(sys.modules["partway.evaluation.evaluate"], "ROWS", 1)
    plan = EvaluationPlan(samples=7, ks=(1, 7))
    for batch_size in (1, 2, 3, 100):
        evaluation = evaluate(DiceEngine(), problems(), plan, batch_size=batch_size)
        assert [result.task_id for result in evaluation.results] == ["p0", "p1", "p2", "p3", "p4"]
        assert [result.drawn for result in evaluation.results] == [7] * 5
        assert [sum(one.sample.count for one in result.pass1) for result in evaluation.results] == [1] * 5


def test_results_depend_on_the_seed_but_not_on_batch_size_or_order(monkeypatch):
    monkeypatch.setattr(sys.modules["partway.evaluation.evaluate"], "ROWS", 1)
    plan = EvaluationPlan(samples=7, ks=(1, 7), seed=3)
    one = evaluate(DiceEngine(), problems(), plan, batch_size=2)
    two = evaluate(DiceEngine(), problems()[::-1], plan, batch_size=5)
    assert one.metrics == two.metrics
    assert sorted(one.results, key=lambda r: r.task_id) == sorted(two.results, key=lambda r: r.task_id)
    assert (
        evaluate(DiceEngine(), problems(), EvaluationPlan(samples=7, ks=(1, 7), seed=4)).results
        != one.results
    )


def test_more_problems_are_drawn_together_where_each_has_one_sample():
    engine = DiceEngine()
    evaluate(engine, problems(70), EvaluationPlan(samples=20, ks=(1,), pass1_samples=1))
    sizes = {temperature: [n for n, t in engine.calls if t == temperature] for _, temperature in engine.calls}
    assert sizes == {0.8: [16, 16, 16, 16, 6], 0.2: [64, 6]}


def test_judging_tells_right_wrong_silent_and_failing_solutions_apart():
    evaluation = evaluate(DiceEngine(), problems(3), EvaluationPlan(samples=40, ks=(1,)))
    seen = {
        s.sample.completion: (s.passed, s.executable, s.answer) for r in evaluation.results for s in r.samples
    }
    assert seen == {
        RIGHT: (True, True, "6"),
        WRONG: (False, True, "7"),
        CRASH: (False, False, None),
        SILENT: (False, True, None),
    }
    results = {s.sample.completion: s.result for r in evaluation.results for s in r.samples}
    assert results[RIGHT] == "passed"
    failures = {
        s.sample.completion: (s.failure, s.failed_step) for r in evaluation.results for s in r.samples
    }
    assert failures == {
        c: ("error", 1) if c == CRASH else (None, None) for c in (RIGHT, WRONG, CRASH, SILENT)
    }
    assert results[WRONG] == "failed: wrong answer 7"
    assert results[SILENT] == "failed: no answer"
    assert results[CRASH].startswith("failed: error in step 1: ")


def test_an_empty_completion_is_not_executable():
    evaluation = evaluate(DiceEngine(texts=("",)), problems(1), EvaluationPlan(samples=4, ks=(1,)))
    assert values(evaluation)["executable"] == 0


def test_pass_at_1_is_drawn_apart_at_the_low_temperature():
    engine = DiceEngine()
    evaluate(engine, problems(3), EvaluationPlan(samples=5), batch_size=3)
    assert engine.calls == [(3, 0.2), (3, 0.8)]


def test_more_problems_are_drawn_together_where_each_has_few_samples():
    engine = DiceEngine()
    evaluate(engine, problems(70), EvaluationPlan(samples=20), batch_size=35)
    assert [count for count, temperature in engine.calls if temperature == 0.2] == [64, 6]
    assert [count for count, temperature in engine.calls if temperature == 0.8] == [35, 35]


def test_a_cheap_evaluation_can_leave_either_kind_of_samples_out():
    low = evaluate(DiceEngine(), problems(), EvaluationPlan(samples=0))
    assert list(low.scalars()) == ["eval_pass@1"]
    high = evaluate(DiceEngine(), problems(), EvaluationPlan(samples=4, pass1_samples=0, ks=(1, 4)))
    assert values(high)["pass@1"] == values(high)["maj@1"]
    assert "eval_pass@1_at_temperature" not in high.scalars()


def test_each_text_of_a_problem_is_traced_once_however_often_it_is_drawn():
    traced = []

    class Counting(PythonLanguage):
        def trace_all(self, pairs):
            traced.extend((problem.id, text) for problem, text in pairs)
            return super().trace_all(pairs)

    plan = EvaluationPlan(samples=50, pass1_samples=0, language=Counting())
    evaluate(DiceEngine(), problems(8), plan, batch_size=8)
    assert len(traced) == len(set(traced))
    assert {text for _, text in traced} == {RIGHT, WRONG, CRASH, SILENT}


def test_an_engine_that_returns_too_few_samples_is_refused():
    class Short(DiceEngine):
        def draws(self, request, settings, seed):
            return [request.sample(RIGHT, request.count - 1)]

    with pytest.raises(EngineError, match="problem p0: 4 samples drawn, expected 5"):
        evaluate(Short(), problems(2), EvaluationPlan(samples=5, pass1_samples=0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 10, "ks": (1, 20)}, "k is 20, expected 1 to 10"),
        ({"samples": 10, "ks": (0,)}, "k is 0"),
        ({"samples": -1}, "samples is -1"),
        ({"samples": 0, "pass1_samples": 0}, "samples is 0"),
        ({"pass1_temperature": -0.2}, "temperature is -0.2"),
    ],
)
def test_impossible_plans_are_refused_before_any_work(arguments, message):
    with pytest.raises(ConfigError, match=message):
        EvaluationPlan(**arguments)


def test_no_problems_and_equal_ids_are_refused():
    with pytest.raises(ProblemError, match="no problems"):
        evaluate(DiceEngine(), [], EvaluationPlan())
    with pytest.raises(ProblemError, match="2 problems have the id 'p0'"):
        evaluate(DiceEngine(), problems(1) * 2, EvaluationPlan())


def test_pass_at_k_refuses_more_than_there_are():
    with pytest.raises(ValueError, match="pass@3 with 1 of 2"):
        pass_at_k(2, 1, 3)


def test_files_are_human_evals_one_line_per_sample(tmp_path):
    evaluation = evaluate(DiceEngine(), problems(3), EvaluationPlan(samples=6, ks=(1, 6)))
    evaluation.write(tmp_path / "step-5.json", about={"step": 5})
    rows = [json.loads(line) for line in (tmp_path / "step-5.jsonl").read_text().splitlines()]
    assert Counter(row["task_id"] for row in rows) == {"p0": 6, "p1": 6, "p2": 6}
    assert {"task_id", "completion", "passed", "result"} < rows[0].keys()
    assert len((tmp_path / "step-5.pass1.jsonl").read_text().splitlines()) == 3
    summary = json.loads((tmp_path / "step-5.json").read_text())
    assert summary["step"] == 5
    assert summary["problems"] == 3
    assert summary["metrics"]["pass@6"]["value"] == values(evaluation)["pass@6"]


def test_solving_nothing_is_reported_with_an_honest_interval():
    plan = EvaluationPlan(samples=4, ks=(1, 4))
    nothing = evaluate(DiceEngine(texts=("answer = -1",)), problems(20), plan).metrics
    for name in ("pass@1", "pass@4", "maj@4"):
        assert (nothing[name].value, nothing[name].low) == (0.0, 0.0)
        assert nothing[name].high == pytest.approx(0.1611, abs=1e-4)
    assert nothing["unique"].high == nothing["unique"].value == 0.25
    once = evaluate(DiceEngine(), problems(20), EvaluationPlan(samples=1)).metrics["unique"]
    assert (once.value, once.low) == (1.0, 1.0)  # one sample is always distinct: no share of problems


def test_an_interval_belongs_to_the_results_and_not_to_the_seed_they_were_drawn_with():
    results = evaluate(DiceEngine(), problems(9), EvaluationPlan(samples=6, ks=(1, 6))).results
    seeds = [Evaluation.of(results, EvaluationPlan(samples=6, ks=(1, 6), seed=seed)) for seed in (0, 7)]
    assert seeds[0].metrics == seeds[1].metrics


def test_the_two_kinds_of_samples_share_no_luck_and_the_cheap_one_comes_first():
    assert [phase.name for phase in EvaluationPlan().phases] == ["pass1", "samples"]
    seeds = [phase.seed for seed in range(20) for phase in EvaluationPlan(seed=seed).phases]
    assert len(set(seeds)) == 40
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert [phase.name for phase in EvaluationPlan(pass1_samples=0).phases] == ["samples"]


def test_a_plan_lists_each_k_and_each_metric_once():
    class Counted(PythonLanguage):
        metrics = ("theirs:lines", "both:steps")

    plan = EvaluationPlan(
        samples=10, ks=(5, 1, 5), language=Counted(), own_metrics=("both:steps", "mine:one")
    )
    assert plan.ks == (1, 5)
    assert plan.own_metrics == ("theirs:lines", "both:steps", "mine:one")


def test_samples_of_an_evaluation_go_with_it_when_another_takes_its_place(tmp_path):
    for plan in (EvaluationPlan(samples=6, ks=(1, 6)), EvaluationPlan(samples=6, ks=(1, 6), pass1_samples=0)):
        evaluation = evaluate(DiceEngine(), problems(3), plan)
        evaluation.write(
            tmp_path / "test.json", expand=False, about={"problems": "not these", "model": "mine"}
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.json", "test.jsonl"]
    rows = [json.loads(line) for line in (tmp_path / "test.jsonl").read_text().splitlines()]
    assert {row["task_id"] for row in rows} == {"p0", "p1", "p2"}
    assert len(rows) < sum(row["count"] for row in rows) == 18, "equal samples are one line with their count"
    summary = json.loads((tmp_path / "test.json").read_text())
    assert (summary["problems"], summary["model"]) == (3, "mine")
    evaluation.write(tmp_path / "test.json")
    lines = [json.loads(line) for line in (tmp_path / "test.jsonl").read_text().splitlines()]
    assert len(lines) == 18
    assert not any("count" in line for line in lines)


def test_a_metric_has_a_column_where_all_problems_have_it():
    judged, silent = (
        Judged(whole(key, "answer=6"), True, "passed", executable=ran)
        for key, ran in (("a", True), ("b", None))
    )
    results = [ProblemResult("a", (judged,), own=(("mine", 2.0),)), ProblemResult("b", (silent,))]
    assert "executable" in score_columns(results[:1], [1])
    assert score_columns(results, [1]).keys() == {"pass@1", "unique", "unique_canonical", "unique_alpha"}
    assert score_columns([], [1]) == {}
    summary = Evaluation.of(tuple(results), EvaluationPlan(samples=1, pass1_samples=0)).to_json()
    assert summary["own_values"] == {"a": {"mine": 2.0}}


def test_the_same_results_in_another_order_are_the_same_evaluation_to_the_last_digit():
    plan = EvaluationPlan(samples=7, ks=(1, 3))
    results = evaluate(DiceEngine(), problems(40), plan).results
    whole_one = Evaluation.of(results, plan)
    assert Evaluation.of(results[::-1], plan).metrics == whole_one.metrics
    for variable, distinct in (("answer", 1.0), ("result", 0.5)):  # which ends at its answer
        language = PythonLanguage(variable)
        samples = tuple(Judged(whole("p", f"result=6\nx={n}"), True, "passed") for n in (1, 2))
        told = Evaluation.of(
            (ProblemResult("p", samples),), replace(plan, samples=2, ks=(1,), language=language)
        )
        assert told.metrics["unique_canonical"].value == distinct
    assert whole_one.scalars("x_") == {f"x_{name}": one.value for name, one in whole_one.metrics.items()}


def test_runs_say_nothing_about_other_problems_than_their_own():
    run = {"x": [float(n % 3 == 0) for n in range(30)], "kept": [float(n % 5) for n in range(30)]}
    ids = [str(n) for n in range(30)]
    apart, shared = (metric_estimates([run] * 2, problems) for problems in ((), [ids] * 2))
    assert shared["kept"].high - shared["kept"].low > 1.2 * (apart["kept"].high - apart["kept"].low)
