"""Buffers of many problems, seeded when they are first asked for."""

import io
from collections.abc import Iterable

from partway import PYTHON, Problem, SolutionBuffer, Verdict, trace
from partway.buffer import Rules, reference_traces, seed_buffers, write_buffers
from partway.sample import Sample
from partway.training.shared_buffers import Buffers

OIL = Problem("oil", "?", 20, "n0 = 2\nn1 = 10\nanswer = n0 * n1")


def seeded(problems: list[Problem], rules: Rules) -> Buffers:
    return Buffers.of(problems, rules, PYTHON, reference_traces(problems))


def written(buffers: Iterable[SolutionBuffer]) -> str:
    write_buffers(stream := io.StringIO(), buffers)
    return stream.getvalue()


def test_buffers_of_many_problems_are_made_when_they_are_first_asked_for():
    problems = [OIL, Problem("weak", "?", 1), Problem("apples", "?", 3, "answer=3")]
    buffers = seeded(problems, Rules())
    assert (list(buffers), "apples" in buffers, "pears" in buffers) == (
        ["oil", "weak", "apples"],
        True,
        False,
    )
    assert written(buffers.in_passing()) == written(seed_buffers(problems).values())
    assert buffers.made == {}  # writing them out does not keep them
    assert buffers["oil"].consider(trace("n0=10\nn1=2\nanswer=1")) is Verdict.NEW_PARTIALLY_CORRECT
    assert len(buffers["oil"]) == 2
    assert list(buffers.made) == ["oil"]
    assert (
        written(buffers.in_passing()).splitlines()[1:]
        == written(seed_buffers(problems).values()).splitlines()[1:]
    )
    assert '"n0 = 10"' in written(buffers.in_passing())


def test_a_buffer_is_made_at_once_if_only_it_can_tell_what_it_will_hold():
    several = Problem("loop", "?", 3, "n0=0\nfor i in range(3):\n    n0 += i\nanswer=n0")
    assert list(seeded([several, OIL], Rules()).made) == ["loop"]


def test_a_problem_whose_first_solution_was_imported_is_solved():
    buffers = seeded([OIL, Problem("weak", "?", 1)], Rules())
    assert buffers["weak"].consider(trace("answer = 1")) is Verdict.NEW_FULLY_CORRECT
    buffers.measure("weak")
    assert buffers.is_solved("weak")
    assert buffers.metrics()["buffer/problems_with_a_solution"] == 2


def test_of_equal_samples_the_first_is_new_and_the_others_are_known():
    buffers = seeded([OIL], Rules())
    buffers.will_explore([OIL])
    text = "n0 = 10\nn1 = 2\nanswer = n0 * n1"
    judged = buffers.consider(Sample("oil", "", text, 5, True), trace(text), step=1)
    assert [(one.count, one.verdict) for one in judged] == [
        (1, Verdict.NEW_FULLY_CORRECT),
        (4, Verdict.KNOWN_FULLY_CORRECT),
    ]
