"""Programs as people write them: read as steps, learned as written."""

import time
from dataclasses import replace

import pytest

from partway import Problem, PythonPrograms, Solution, SolutionBuffer, Verdict, trace
from partway.buffer import Rules
from partway.execution.checkers import TESTS
from partway.execution.programs import programs_of

WRITTEN = PythonPrograms(program_forms="written")
OPEN = PythonPrograms(solution_end="end_of_text")
PAL = "def solution():\n    n0 = 2\n    n1 = 10\n    t0 = n0 * n1\n    return t0 + 5\n\nprint(solution())"
POT = "n0 = 2\nn1 = 10\nprint(n0 * n1 + 5)"
GUARD = "import math\n\nif __name__ == '__main__':\n    n0 = 2\n    n1 = 10\n    print(n0 * n1 + 5)"


@pytest.mark.parametrize(
    ("text", "states"),
    [
        (PAL, ("2", "10, 2", "10, 2, 20", "10, 2, 20, 25")),
        (POT, ("2", "10, 2", "10, 2, 25")),
        ("n0 = 2\nn0 + 23", ("2", "2, 25")),
        (GUARD, ("", "2", "10, 2", "10, 2, 25")),
        ("import math\n\ndef solution():\n    a = 25\n    return a", ("", "25", "25, 25")),
        ("n0 = 2\nanswer = n0 + 23", ("2", "2, 25")),
    ],
)
def test_each_form_has_the_states_of_its_statements_and_an_answer(text: str, states: tuple[str, ...]):
    found = trace(text, WRITTEN)
    assert found.failure is None
    assert found.states == states
    assert found.answer == 25


def test_the_written_text_is_what_is_learned_and_prefixes_are_its_beginnings():
    solution = WRITTEN.parse(PAL)
    assert solution.text == PAL.split("\n\n")[0]
    assert len(solution) == 4
    for length in range(1, 4):
        prefix = solution.prefix(length)
        assert solution.text.startswith(prefix.text)
        assert WRITTEN.parse(prefix.text) == prefix
        assert trace(prefix, WRITTEN).states == trace(solution, WRITTEN).states[:length]


def test_forms_meet_in_the_buffer():
    buffer = SolutionBuffer.seeded(Problem("p", "?", 25, WRITTEN.parse(PAL)), programs=WRITTEN)
    wrong = "def solve():\n    a = 10\n    b = 2\n    return a - b"
    assert buffer.consider(trace(wrong, WRITTEN)) is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution(("def solve():\n    a = 10", "    b = 2")),)
    assert buffer.consider(trace(POT, WRITTEN)) is Verdict.NEW_FULLY_CORRECT


def test_a_function_with_several_ways_out_stays_one_step():
    text = "def solution():\n    if 1 > 2:\n        return 3\n    return 4\nanswer = solution()"
    assert len(trace(text, WRITTEN).solution) == 2
    assert trace(text, WRITTEN).answer == 4
    assert len(trace("def f(x):\n    return x\nanswer = f(2)", WRITTEN).solution) == 2


def test_text_that_is_cut_off_keeps_its_good_beginning():
    found = trace("def solution():\n    n0 = 2\n    n1 = n0 *", WRITTEN)
    assert found.states == ("2",)
    assert found.failure is not None
    assert not found.has_answer
    late = trace("def solution():\n    n0 = 2\n    n1 = n0 / 0\n    return n1", WRITTEN)
    assert late.states == ("2",)
    assert late.failure.step == 1


def test_a_function_ends_with_its_return():
    text = "def solution():\n    a = max(1,\n        2)\n    return (a +\n        3)\nprint(solution())\n"
    end = WRITTEN.end(text)
    assert end is not None
    assert text[:end].endswith("3)\n")
    assert WRITTEN.end("def solution():\n    a = 1\n") is None
    assert WRITTEN.may_end("    return a")
    assert WRITTEN.end("a = 1\nanswer = a\nb = 2\n") == len("a = 1\nanswer = a\n")


def test_an_accumulator_is_one_solution_up_to_the_end_of_its_text():
    text = "answer = 0\nfor i in range(4):\n    answer += i\nanswer = answer * 2"
    assert trace(text).answer == 0
    found = trace(text, OPEN)
    assert found.answer == 12
    assert len(found.solution) == 3
    assert OPEN.parse(text).steps == found.solution.steps
    assert OPEN.end("answer = 0\n") is None
    assert not OPEN.may_end("answer = 0")
    buffer = SolutionBuffer.seeded(Problem("p", "?", 12, OPEN.parse(text)), programs=OPEN)
    again = "answer = 0\nfor i in range(4):\n    answer = answer + i\nanswer = answer * 3"
    assert buffer.consider(trace(again, OPEN)) is Verdict.NEW_PARTIALLY_CORRECT
    assert not trace("answer = 1\nx = 1 / 0", OPEN).has_answer


@pytest.mark.parametrize("programs", [WRITTEN, OPEN])
def test_they_are_made_again_from_their_settings(programs: PythonPrograms):
    assert programs_of(programs.settings()) == programs


LIVE = Rules(equivalence="live")


def live_completion(sample: str, reference: str) -> tuple[str, ...]:
    problem = Problem("p", "?", 25, WRITTEN.parse(reference))
    buffer = SolutionBuffer.seeded(problem, LIVE, WRITTEN)
    assert not buffer.falls_back
    assert buffer.consider(trace(sample, WRITTEN)) is Verdict.NEW_PARTIALLY_CORRECT
    (witness,) = buffer.witnesses.values()
    (beginning,) = buffer.partially_correct
    assert trace(Solution((*beginning.steps, *witness.completion)), WRITTEN).answer == 25
    return witness.completion


def test_live_values_complete_programs_as_their_writer_would():
    function = "def solve():\n    x = 20\n    y = 7\n    return y"
    assert live_completion(function, PAL) == ("    return x + 5",)
    assert live_completion(function, "n0 = 20\nn1 = 2\nprint(n0 + 5)") == ("    return x + 5",)
    assert live_completion("x = 20\nprint(x)", PAL) == ("answer = x + 5",)
    assert live_completion("x = 20\nprint(x)", "n0 = 20\nn1 = 2\nprint(n0 + 5)")[-1] == "print(x + 5)"
    guarded = "import math\nif __name__ == '__main__':\n    x = 20\n    y = 7\n    print(y)"
    assert live_completion(guarded, PAL)[-1] == "    answer = x + 5"


def test_duplicates_up_to_renaming_are_found_in_every_form():
    rules = Rules(dedup="alpha")
    buffer = SolutionBuffer.seeded(Problem("p", "?", 25, WRITTEN.parse(PAL)), rules, WRITTEN)
    renamed = PAL.replace("n0", "a").replace("n1", "b")
    assert buffer.consider(trace(renamed, WRITTEN)) is Verdict.KNOWN_FULLY_CORRECT


def test_an_accumulator_is_completed_in_its_own_variable():
    reference = "total = 3\nanswer = 0\nfor i in range(4):\n    answer += i\nanswer = answer * total"
    problem = Problem("p", "?", 18, OPEN.parse(reference))
    buffer = SolutionBuffer.seeded(problem, LIVE, OPEN)
    assert buffer.consider(trace("answer = 0\nk = 3\nx = 5", OPEN)) is Verdict.NEW_PARTIALLY_CORRECT
    (witness,) = buffer.witnesses.values()
    assert witness.completion[-1] == "answer = answer * k"


@pytest.mark.parametrize(
    "text",
    [
        "x=(\n" * 2000,
        f"def f():\n    x = 0x{'f' * 5000}\n    return x",
        f"def f():\n    return {'-' * 330}1",
        "def f():\n" + "    a=1\n" * 2000 + "    return a",
        "def f():\n    return (\n" * 700,
    ],
)
def test_text_that_takes_long_to_read_or_to_spell_is_left_alone(text: str):
    for programs in (WRITTEN, replace(WRITTEN, checker=TESTS)):
        started = time.process_time()
        trace(text, programs)
        assert time.process_time() - started < 0.5
