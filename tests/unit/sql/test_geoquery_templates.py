"""The script beside the configurations of GeoQuery counts what it says."""

import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from report_cases import save_buffers

from partway.buffer import Rules, SolutionBuffer, Verdict
from partway.evaluation import Evaluation, EvaluationPlan, ProblemResult
from partway.evaluation.samples import judge, whole
from partway.problem import Problem
from partway.problems import write_problems
from partway.runs import Run
from partway.sample import Sample
from partway.sql.sql import SQLLanguage

SCRIPT = Path(__file__).parents[3] / "configs" / "geoquery" / "templates.py"
SQL = SQLLanguage()
TABLES = "CREATE TABLE state (name, area, people); INSERT INTO state VALUES ('ohio', 4, 9), ('texas', 9, 3)"
LARGEST = "SELECT name FROM state WHERE area = (SELECT MAX(area) FROM state)"
LUCKY = "SELECT name FROM state WHERE people = (SELECT MIN(people) FROM state)"


def problem(name: str, template: int, query: str, answer: str) -> Problem:
    return Problem(name, f"{name}?", [[answer]], SQL.parse(query), {"template": template}, TABLES)


@pytest.fixture
def data(tmp_path):
    """Problems of three templates, of which training has two, and one of these without its reference."""
    train = [
        problem("a", 0, "SELECT name FROM state WHERE area = 4", "ohio"),
        problem("b", 1, LARGEST, "texas"),
    ]
    test = [replace(one, id=f"test {one.id}") for one in train] + [problem("test c", 2, LARGEST, "texas")]
    (tmp_path / "data").mkdir()
    for name, problems in (("train", train), ("test", test)):
        write_problems(tmp_path / "data" / f"{name}.jsonl", problems)
    run = Run(tmp_path / "run")
    run.write_config({"language": "sql"})
    seen = [train[0], replace(train[1], reference=None)]
    run.write_problems("train", seen)
    buffers = {one.id: SolutionBuffer(one, Rules(), SQL) for one in seen}
    for text in (LARGEST, LUCKY):
        (trace,) = SQL.trace_all([(seen[1], text)])
        assert buffers["b"].consider(trace) is Verdict.NEW_FULLY_CORRECT
    save_buffers(run.final, buffers)
    verdicts = {Verdict.NEW_PARTIALLY_CORRECT: 2, Verdict.KNOWN_PARTIALLY_CORRECT: 3, Verdict.INCORRECT: 5}
    run.append_samples([Sample("b", "", LUCKY, n, True, step=1, verdict=one) for one, n in verdicts.items()])
    answered = {"test a": "SELECT 'ohio'", "test b": LARGEST, "test c": "SELECT 'ohio'"}
    judged = [
        judge(one, whole(one.id, answered[one.id], 4), SQL.trace_all([(one, answered[one.id])])[0], SQL)
        for one in test
    ]
    results = tuple(ProblemResult(one.sample.problem, (one,)) for one in judged)
    plan = EvaluationPlan(samples=4, pass1_samples=0, language=replace(SQL))
    Evaluation.of(results, plan).write(run.evaluation_file("test"))
    return tmp_path


def test_what_a_run_found_is_told_with_luck_beginnings_and_templates(data, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["templates.py", str(data / "data"), str(data / "run")])
    runpy.run_path(str(SCRIPT))["main"]()
    assert capsys.readouterr().out.splitlines() == [
        "run:",
        "  1 references; solved 1 of 1 other problems, with 2 solutions: 1 are the hidden reference, "
        "1 give other rows on changed databases (50%)",
        "  10 samples: 2 new right beginnings, 3 known ones",
        "  test problems, by what training had of their template: a reference 100.0% of 1, "
        "answers only 100.0% of 1, nothing 0.0% of 1",
    ]
