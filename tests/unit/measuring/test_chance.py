from collections import Counter
from dataclasses import fields, replace

import click
import pytest
from languages import Expressions

from partway import PYTHON, Problem
from partway.errors import ProblemError
from partway.measuring import commands
from partway.measuring.chance import Chance, best_above
from partway.measuring.engine_options import EvaluateOptions
from partway.models.engine import SamplingSettings
from partway.runs import Run
from partway.sample import Request
from partway.solution import EMPTY
from passatk import Estimate

WHEELS = Problem("wheels", "10 ml for each of 2 wheels?", 20, "n0 = 10\nn1 = 2\nanswer = n0 * n1")
PENS = Problem("pens", "3 boxes with 1,200 pens each?", 3600)


def drawn(problem: Problem, count: int, *train: Problem, seed: int = 0) -> Counter[str]:
    (samples,) = Chance(train, PYTHON).complete([Request(problem, EMPTY, count)], SamplingSettings(), seed)
    assert all(sample.finished for sample in samples)
    assert all(sample.text.removesuffix("\n") == sample.text.rstrip() != sample.text for sample in samples)
    return Counter({sample.text.rstrip(): sample.count for sample in samples})


def test_the_questions_numbers_stand_in_every_order_where_the_references_own_did():
    found = drawn(PENS, 400, WHEELS)
    assert set(found) == {"n0 = 3\nn1 = 1200\nanswer = n0 * n1", "n0 = 1200\nn1 = 3\nanswer = n0 * n1"}
    assert all(count > 150 for count in found.values())


def test_numbers_that_the_question_does_not_say_stay_as_they_are():
    percent = Problem("percent", "20 of 100 pens, in percent?", 20, "n0 = 20\nanswer = n0 * 100 / 100 + 7")
    assert all(text.endswith("+ 7") for text in drawn(PENS, 20, percent))


def test_references_are_drawn_alike_and_problems_without_one_never():
    minus = Problem("minus", "7 less 4?", 3, "n0 = 7\nn1 = 4\nanswer = n0 - n1")
    found = drawn(PENS, 600, WHEELS, minus, Problem("none", "1 of 2?", 0.5))
    assert 230 < sum(count for text, count in found.items() if "-" in text) < 370


def test_a_question_with_fewer_numbers_repeats_them_and_one_without_leaves_the_reference():
    one = Problem("one", "Twice 8?", 16)
    assert set(drawn(one, 5, WHEELS)) == {"n0 = 8\nn1 = 8\nanswer = n0 * n1"}
    assert set(drawn(Problem("word", "Twice eight?", 16), 5, WHEELS)) == {"n0 = 10\nn1 = 2\nanswer = n0 * n1"}


def test_of_too_few_numbers_each_may_stand_in_any_place():
    three = Problem("three", "4 of 5 of 6?", 120, "answer = 4 * 5 * 6")
    found = drawn(Problem("two", "8 or 9?", 8), 200, three)
    assert set(found) == {f"answer = {a} * {b} * {c}" for a in (8, 9) for b in (8, 9) for c in (8, 9)}


def test_a_number_that_the_reference_says_twice_is_one_place():
    twice = Problem("twice", "10 and 2, and 10 again?", 22, "n0 = 10\nn1 = 2\nanswer = n0 + n1 + 10")
    assert set(drawn(Problem("two", "8 or 9?", 8), 50, twice)) == {
        "n0 = 8\nn1 = 9\nanswer = n0 + n1 + 8",
        "n0 = 9\nn1 = 8\nanswer = n0 + n1 + 9",
    }


def test_numbers_are_read_as_people_write_them():
    one = Problem("one", "Twice 8?", 16, "answer = 8 * 2")
    for written, number in (("1,234.50", "1234.50"), (".5", ".5"), ("1,234,567", "1234567"), ("2.", "2")):
        assert set(drawn(Problem("p", f"Twice {written}?", 0), 5, one)) == {f"answer = {number} * 2"}


def test_the_best_is_above_chance_only_with_its_whole_interval():
    touching, above = Estimate(0.5, 0.3, 0.7), Estimate(0.5, 0.31, 0.7)
    chance = Estimate(0.3, 0.2, 0.4)
    assert (best_above({0: touching}, chance), best_above({0: above}, chance)) == (None, 0)
    assert best_above({}, chance) is None


def test_what_is_drawn_hangs_on_the_seed_and_the_problem_only():
    chance = Chance([WHEELS], PYTHON)
    requests = [Request(PENS, EMPTY, 9), Request(WHEELS, EMPTY, 9)]
    both = chance.complete(requests, SamplingSettings(), 1)
    assert chance.complete(requests[1:], SamplingSettings(temperature=1.5), 1) == both[1:]
    assert drawn(PENS, 50, WHEELS, seed=1) != drawn(PENS, 50, WHEELS, seed=2)


def test_who_has_no_reference_or_a_language_that_is_not_python_is_told():
    with pytest.raises(ProblemError, match="none has one"):
        Chance([PENS], PYTHON)
    with pytest.raises(ProblemError, match="chance is not known for Expressions"):
        Chance([WHEELS], Expressions())


def summary(chance=None, temperature=0.8, **metrics):
    """A summary of numbers, each with an interval of 5 points on either side."""
    estimates = {
        name.replace("_at_", "@"): {"value": value, "low": value - 0.05, "high": value + 0.05}
        for name, value in {**metrics, "unique": 0.5}.items()
    }
    drawn = {"problems": 8, "samples": 5, "pass1_samples": 0, "temperature": temperature}
    return {**drawn, "chance": chance, "metrics": estimates}


def test_the_best_temperature_has_a_star_where_it_is_above_chance(capsys):
    cold = summary(temperature=0.2, pass_at_1=0.4, pass_at_5=0.45, true_pass_at_1=0.3, true_pass_at_5=0.4)
    hot = summary(temperature=1.5, pass_at_1=0.2, pass_at_5=0.55, true_pass_at_1=0.1, true_pass_at_5=0.5)
    chance = summary("train", pass_at_1=0.1, pass_at_5=0.52, true_pass_at_1=0.1, true_pass_at_5=0.3)
    commands.show_temperatures([cold, hot, chance])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-6:]]
    assert rows == [
        ["0.2", "40.0%*", "45.0%", "50.0%"],
        ["without", "luck", "30.0%*", "40.0%"],
        ["1.5", "20.0%", "55.0%", "50.0%"],
        ["without", "luck", "10.0%", "50.0%*"],
        ["chance", "10.0%", "52.0%", "50.0%"],
        ["without", "luck", "10.0%", "30.0%"],
    ]
    commands.show_temperatures([cold, hot])
    assert "*" not in capsys.readouterr().out, "without chance nobody knows"
    commands.show_summary(hot, chance)
    rows = [line.split()[:2] + line.split()[5:6] for line in capsys.readouterr().out.splitlines()[2:6]]
    assert rows == [
        ["pass@1", "20.0%*", "10.0%"],
        ["pass@5", "55.0%", "52.0%"],
        ["true_pass@1", "10.0%", "10.0%"],
        ["true_pass@5", "50.0%*", "30.0%"],
    ]


def test_a_run_at_several_temperatures_takes_chance_from_what_it_learned(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(commands.logger, "info", lambda text, *words: said.append(text % words))
    run, asked = Run(tmp_path / "run"), dict.fromkeys(field.name for field in fields(EvaluateOptions))
    run.write_config({})
    run.write_problems("train", [WHEELS])
    options = EvaluateOptions(**{**asked, "model": str(run.directory), "temperatures": "0.4,1.2"})
    with click.Context(commands.command):
        floor = commands._floor(options, tmp_path / "test.jsonl")
    assert (floor.chance, floor.name) == (str(run.problems_file("train")), "test-chance")
    assert commands._floor(replace(options, temperatures=None), tmp_path / "test.jsonl") is None
    run.write_problems("train", [replace(WHEELS, reference=None)])
    with click.Context(commands.command):
        assert commands._floor(options, tmp_path / "test.jsonl") is None
    assert "no line for chance: chance needs problems with a reference" in "".join(said)
