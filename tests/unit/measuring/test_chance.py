from collections import Counter

import pytest
from languages import Expressions

from partway import PYTHON, Problem
from partway.errors import ProblemError
from partway.measuring.chance import Chance
from partway.models.engine import Request, SamplingSettings
from partway.solution import EMPTY

WHEELS = Problem("wheels", "10 ml for each of 2 wheels?", 20, "n0 = 10\nn1 = 2\nanswer = n0 * n1")
PENS = Problem("pens", "3 boxes with 1,200 pens each?", 3600)


def drawn(problem: Problem, count: int, *train: Problem, seed: int = 0) -> Counter[str]:
    (samples,) = Chance(train, PYTHON).complete([Request(problem, EMPTY, count)], SamplingSettings(), seed)
    assert all(sample.finished for sample in samples)
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
