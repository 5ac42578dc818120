"""Programs as people write them: read as steps, learned as written."""

import time

import pytest

from partway import Problem, Solution, SolutionBuffer, Verdict, trace
from partway.buffer import Rules
from partway.language.named import language_of, settings_of
from partway.written.forms import WrittenLanguage
from partway.written.tested import TestedLanguage

WRITTEN = WrittenLanguage()
OPEN = WrittenLanguage(solution_end="end_of_text")
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
    buffer = SolutionBuffer.seeded(Problem("p", "?", 25, WRITTEN.parse(PAL)), language=WRITTEN)
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
    assert WRITTEN.end("a = 1\nanswer = a\nb = 2\n") == len("a = 1\nanswer = a\n")


def test_an_accumulator_is_one_solution_up_to_the_end_of_its_text():
    text = "answer = 0\nfor i in range(4):\n    answer += i\nanswer = answer * 2"
    assert trace(text).answer == 0
    found = trace(text, OPEN)
    assert found.answer == 12
    assert len(found.solution) == 3
    assert OPEN.parse(text).steps == found.solution.steps
    assert OPEN.end("answer = 0\n") is None
    buffer = SolutionBuffer.seeded(Problem("p", "?", 12, OPEN.parse(text)), language=OPEN)
    again = "answer = 0\nfor i in range(4):\n    answer = answer + i\nanswer = answer * 3"
    assert buffer.consider(trace(again, OPEN)) is Verdict.NEW_PARTIALLY_CORRECT
    assert not trace("answer = 1\nx = 1 / 0", OPEN).has_answer


@pytest.mark.parametrize("language", [WRITTEN, OPEN])
def test_they_are_made_again_from_their_settings(language: WrittenLanguage):
    assert language_of(settings_of(language)) == language


def test_duplicates_up_to_renaming_are_found_in_every_form():
    rules = Rules(dedup="alpha")
    buffer = SolutionBuffer.seeded(Problem("p", "?", 25, WRITTEN.parse(PAL)), rules, WRITTEN)
    renamed = PAL.replace("n0", "a").replace("n1", "b")
    assert buffer.consider(trace(renamed, WRITTEN)) is Verdict.KNOWN_FULLY_CORRECT


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
    for language in (WRITTEN, TestedLanguage()):
        started = time.process_time()
        trace(text, language)
        assert time.process_time() - started < 0.5


def test_a_whole_solution_that_another_one_continues_stays():
    # Where a solution ends with its text, a fully-correct one can be the beginning of another
    problem = Problem("oil", "?", 25, "n0=2\nn1=10\nn2=5\nt0=n0*n1\nanswer=t0+n2")
    buffer = SolutionBuffer.seeded(problem, language=OPEN)
    assert buffer.consider(trace("n0=20\nanswer=n0+5", OPEN)) is Verdict.NEW_FULLY_CORRECT
    assert buffer.consider(trace("n0=20\nanswer=n0+5\nanswer=answer*1", OPEN)) is Verdict.NEW_FULLY_CORRECT
    assert [len(solution) for solution in buffer.fully_correct] == [5, 2, 3]


def test_a_model_is_asked_for_what_the_forms_are():
    words = WrittenLanguage("result").instruction.words
    assert words.endswith("that returns the answer from a function or assigns it to 'result'.")
