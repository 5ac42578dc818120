"""Every decision about the buffer, each with a test named after it."""

import json
import random
from collections import Counter

import pytest

from partway import EMPTY, Problem, PythonLanguage, Solution, SolutionBuffer, Verdict, trace
from partway.buffer import Rules, reconsider, seed_buffers
from partway.errors import ProblemError

OIL = Problem("oil", "Ellie has found an old bicycle ...", 25, "n0=2\nn1=10\nn2=5\nt0=n0*n1\nanswer=t0+n2")


def consider(buffer: SolutionBuffer, text: str) -> Verdict:
    return buffer.consider(trace(text, buffer.language))


def rows_of(problem, *solutions):
    return [{"id": problem.id, "solutions": [{"steps": text.splitlines()} for text in solutions]}]


def test_a_buffer_starts_with_the_reference_and_all_its_prefixes():
    buffer = SolutionBuffer.seeded(OIL)
    assert buffer.fully_correct == (OIL.reference,)
    assert buffer.partially_correct == ()
    assert buffer.prefixes_by_state["10, 2"] == (Solution(("n0 = 2", "n1 = 10")),)
    assert len(buffer.prefixes_by_state) == 5


def test_the_answer_is_checked_before_states():
    buffer = SolutionBuffer.seeded(OIL)
    # right answer, and a state (2, 10, 5) that is known: fully correct all the same
    assert consider(buffer, "n0=5\nn1=10\nn2=2\nanswer=n1*n2+n0") is Verdict.NEW_FULLY_CORRECT
    assert consider(buffer, "n0=5\nn1=10\nn2=2\nanswer=n1*n2+n0") is Verdict.KNOWN_FULLY_CORRECT


def test_the_walk_stops_at_the_first_match_from_the_end():
    buffer = SolutionBuffer.seeded(OIL)
    assert consider(buffer, "n0=10\nn1=2\nn2=5\nn3=77\nanswer=n3") is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution.parse("n0=10\nn1=2\nn2=5"),)


def test_the_step_with_a_wrong_answer_is_never_part_of_a_partial_solution():
    problem = Problem("p", "?", 5, "a=2\nb=3\nanswer=a+b")
    buffer = SolutionBuffer.seeded(problem)
    # its last state {2, 3} is known, but reached by the step that answers
    assert consider(buffer, "x=2\nanswer=3") is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution.parse("x=2"),)


def test_a_late_crash_keeps_the_good_beginning():
    buffer = SolutionBuffer.seeded(OIL)
    assert consider(buffer, "n0=10\nn1=2\nt0=n0/0\nanswer=t0") is Verdict.NEW_PARTIALLY_CORRECT
    assert consider(buffer, "n0=5\nn1=10\nanswer = = 3") is Verdict.INCORRECT
    assert consider(buffer, "n1=2\nn0=10\nt0 = n0 *") is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct[1] == Solution.parse("n1=2\nn0=10")


def test_prefixes_are_by_steps_never_by_characters():
    problem = Problem("p", "?", 11, "n0=10\nanswer=n0+1")
    buffer = SolutionBuffer.seeded(problem)
    assert consider(buffer, "n0=1\nanswer=n0+10") is Verdict.NEW_FULLY_CORRECT
    assert consider(buffer, "n0=1\nanswer=n0") is Verdict.KNOWN_PARTIALLY_CORRECT
    assert consider(buffer, "x=1\nanswer=x") is Verdict.NEW_PARTIALLY_CORRECT


def test_keeping_a_solution_drops_the_partial_ones_it_continues():
    buffer = SolutionBuffer.seeded(OIL)
    assert consider(buffer, "n0=10\nn1=2\nanswer=1") is Verdict.NEW_PARTIALLY_CORRECT
    assert consider(buffer, "n0=10\nn1=2\nn2=5\nanswer=1") is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution.parse("n0=10\nn1=2\nn2=5"),)
    assert consider(buffer, "n0=10\nn1=2\nn2=5\nanswer=n0*n1+n2") is Verdict.NEW_FULLY_CORRECT
    assert buffer.partially_correct == ()
    assert consider(buffer, "n0=10\nn1=2\nanswer=1") is Verdict.KNOWN_PARTIALLY_CORRECT


def test_the_empty_solution_is_never_pruned_and_never_learned():
    buffer = SolutionBuffer.seeded(OIL)
    consider(buffer, "n0=10\nn1=2\nanswer=1")
    drawn = Counter(buffer.draw_prefix(random.Random(seed)) for seed in range(400))
    assert set(drawn) == {EMPTY, Solution.parse("n0=10\nn1=2")}
    assert 150 < drawn[EMPTY] < 250
    assert EMPTY not in (*buffer.fully_correct, *buffer.partially_correct)


@pytest.mark.parametrize("text", ["", "x = = 1", "x = 1 / 0\nanswer = 25", "answer = undefined"])
def test_nothing_executed_is_not_executable(text: str):
    assert consider(SolutionBuffer.seeded(OIL), text) is Verdict.NOT_EXECUTABLE


def test_no_matching_state_is_incorrect():
    assert consider(SolutionBuffer.seeded(OIL), "n0=99\nanswer=n0") is Verdict.INCORRECT
    assert consider(SolutionBuffer.seeded(OIL), "answer=24") is Verdict.INCORRECT


def test_integers_and_floats_reach_the_same_state():
    assert consider(SolutionBuffer.seeded(OIL), "n0=2.0\nanswer=n0") is Verdict.NEW_PARTIALLY_CORRECT


def test_a_state_is_a_multiset():
    problem = Problem("p", "?", 4, "a=2\nb=2\nanswer=a+b")
    assert consider(SolutionBuffer.seeded(problem), "x=2\ny=2\nanswer=0") is Verdict.NEW_PARTIALLY_CORRECT
    other = Problem("p", "?", 5, "a=2\nb=3\nanswer=a+b")
    assert consider(SolutionBuffer.seeded(other), "x=2\ny=2\nanswer=0") is Verdict.NEW_PARTIALLY_CORRECT
    assert SolutionBuffer.seeded(problem).prefixes_by_state.keys() >= {"2", "2, 2"}


def test_state_set_ignores_repeated_values():
    problem = Problem("p", "?", 4, "a=2\nb=2\nanswer=a+b")
    buffer = SolutionBuffer.seeded(problem, language=PythonLanguage(state="set"))
    assert set(buffer.prefixes_by_state) == {"2", "2, 4"}
    assert consider(buffer, "x=2\ny=2\nanswer=0") is Verdict.TOO_LONG  # `a=2` reaches that set in one step


def test_state_strict_compares_the_spelling():
    buffer = SolutionBuffer.seeded(OIL, language=PythonLanguage(state="strict"))
    assert consider(buffer, "n0=2.0\nanswer=n0") is Verdict.INCORRECT
    assert consider(buffer, "m=2\nanswer=m") is Verdict.NEW_PARTIALLY_CORRECT


def test_an_empty_state_never_matches():
    problem = Problem("p", "?", 2.0, "import math\nanswer=math.sqrt(4)")
    buffer = SolutionBuffer.seeded(problem)
    assert consider(buffer, "import math\nx=1\nanswer=x") is Verdict.INCORRECT
    assert consider(buffer, "pass\nanswer=1") is Verdict.INCORRECT


def test_dedup_spelling_keeps_no_solution_that_only_spells_numbers_differently():
    text = "n0 = 2.0\nn1 = 10\nn2 = 5.00\nt0 = n0 * n1\nanswer = t0 + n2"
    for dedup, verdict in {
        "alpha": Verdict.NEW_FULLY_CORRECT,
        "spelling": Verdict.KNOWN_FULLY_CORRECT,
    }.items():
        assert consider(SolutionBuffer.seeded(OIL, Rules(dedup=dedup)), text) is verdict
    spelling = Rules(dedup="spelling")
    assert consider(SolutionBuffer.seeded(OIL, spelling), "a = 2.0\nanswer = a") is (
        Verdict.KNOWN_PARTIALLY_CORRECT
    )
    other = "n0 = 2.0\nn1 = 10\nn2 = 5\nt0 = n1 * n0\nanswer = t0 + n2"
    assert consider(SolutionBuffer.seeded(OIL, spelling), other) is Verdict.NEW_FULLY_CORRECT


def test_dedup_ast_keeps_renamed_solutions_and_alpha_does_not():
    text = "a=2\nb=10\nc=5\nd=a*b\nanswer=d+c"
    assert consider(SolutionBuffer.seeded(OIL), text) is Verdict.NEW_FULLY_CORRECT
    assert consider(SolutionBuffer.seeded(OIL, Rules(dedup="alpha")), text) is Verdict.KNOWN_FULLY_CORRECT
    assert consider(SolutionBuffer.seeded(OIL, Rules(dedup="alpha")), "a=2\nanswer=a") is (
        Verdict.KNOWN_PARTIALLY_CORRECT
    )


def test_a_correct_solution_longer_than_the_reference_is_too_long():
    long = "n3=0\nn0=2\nn1=10\nn2=5\nt0=n0*n1\nanswer=t0+n2"
    assert consider(SolutionBuffer.seeded(OIL), long) is Verdict.TOO_LONG
    assert consider(SolutionBuffer.seeded(OIL, Rules(length_tolerance=1)), long) is Verdict.NEW_FULLY_CORRECT


def test_the_beginnings_of_a_correct_solution_that_is_too_long_are_considered():
    buffer = SolutionBuffer.seeded(OIL)
    text = "n0=10\nn1=2\nx=0\ny=0\nz=5\nanswer=n0*n1+z"
    assert consider(buffer, text) is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution.parse("n0=10\nn1=2"),)
    assert consider(buffer, text) is Verdict.TOO_LONG


def test_a_beginning_longer_than_the_shortest_known_one_for_its_state_is_too_long():
    problem = Problem("p", "?", 9, "a=3\nanswer=a*3")
    text = "x=4\nx=3\nanswer=x"
    assert consider(SolutionBuffer.seeded(problem), text) is Verdict.TOO_LONG
    tolerant = SolutionBuffer.seeded(problem, Rules(length_tolerance=1))
    assert consider(tolerant, text) is Verdict.NEW_PARTIALLY_CORRECT


def test_without_a_reference_the_first_correct_sample_seeds_the_buffer():
    buffer = SolutionBuffer.seeded(Problem("p", "?", 6))
    assert len(buffer) == 0
    assert consider(buffer, "a=1\nanswer=a") is Verdict.INCORRECT
    assert consider(buffer, "a=2\nanswer=a*3") is Verdict.NEW_FULLY_CORRECT
    assert consider(buffer, "b=2\nanswer=b") is Verdict.NEW_PARTIALLY_CORRECT


def test_without_a_reference_three_solutions_and_not_one_set_the_length():
    buffer = SolutionBuffer.seeded(Problem("p", "?", 6))
    assert consider(buffer, "answer=6") is Verdict.NEW_FULLY_CORRECT
    assert consider(buffer, "a=1\nb=2\nc=3\nanswer=a+b+c") is Verdict.NEW_FULLY_CORRECT
    assert consider(buffer, "a=1\nb=5\nanswer=a+b") is Verdict.NEW_FULLY_CORRECT
    assert buffer.limit == 4
    assert consider(buffer, "a=2\nb=3\nanswer=a*b") is Verdict.NEW_FULLY_CORRECT
    assert buffer.limit == 3  # the third shortest
    assert consider(buffer, "d=7\nb=0\nc=1\nanswer=d-c") is Verdict.TOO_LONG


def test_without_a_reference_solutions_are_no_longer_than_nine_in_ten_references():
    given = [Problem(f"p{n}", "?", 1, "x=0\n" * n + "answer=1") for n in range(1, 11)]
    buffers = seed_buffers([*given, Problem("weak", "?", 1)])
    assert buffers["weak"].limit == 11
    assert seed_buffers([*given, Problem("weak", "?", 1)], Rules(length_limit=3))["weak"].limit == 3
    assert consider(buffers["weak"], "x=0\n" * 11 + "answer=1") is Verdict.TOO_LONG


def test_without_a_reference_long_solutions_do_not_raise_their_limit():
    rules = Rules(length_limit=2, length_tolerance=1)
    buffer = SolutionBuffer.seeded(Problem("p", "?", 6), rules)
    for number in range(3):
        assert consider(buffer, f"a={number}\nb=6-a\nanswer=a+b") is Verdict.NEW_FULLY_CORRECT
        assert buffer.limit == 2 + 1


def test_the_limit_of_solutions_without_a_reference_shuts_out_no_reference():
    buffer = SolutionBuffer.seeded(OIL, Rules(length_limit=2))
    assert buffer.fully_correct == (OIL.reference,)
    assert buffer.limit == len(OIL.reference)
    assert consider(buffer, "a=10\nb=2\nc=5\nanswer=a*b+c") is Verdict.NEW_FULLY_CORRECT


def test_answers_need_not_be_numbers():
    buffer = SolutionBuffer.seeded(Problem("p", "?", True, "a=3\nanswer=a > 2"))
    assert consider(buffer, "a=3\nanswer=2 < a") is Verdict.NEW_FULLY_CORRECT
    assert consider(buffer, "a=3\nanswer=1") is Verdict.KNOWN_PARTIALLY_CORRECT


def test_fcs_only_keeps_no_partial_solutions():
    buffer = SolutionBuffer.seeded(OIL, Rules(keeps_partial=False))
    assert consider(buffer, "n0=10\nn1=2\nanswer=1") is Verdict.INCORRECT
    assert consider(buffer, "n0=10\nn1=5\nt0=n0+n1\nanswer=n0+t0") is Verdict.NEW_FULLY_CORRECT
    assert buffer.draw_prefix(random.Random(0)) == EMPTY


def test_the_answer_variable_can_have_another_name():
    problem = Problem("p", "?", 3, Solution.parse("a=1\nresult=a+2", "result"))
    buffer = SolutionBuffer.seeded(problem, language=PythonLanguage(answer_variable="result"))
    assert consider(buffer, "b=1\nresult=b+2") is Verdict.NEW_FULLY_CORRECT


def test_a_cap_forgets_the_oldest_partial_solution_first_and_never_the_reference():
    buffer = SolutionBuffer.seeded(OIL, Rules(max_solutions=2))
    consider(buffer, "a=2\nanswer=1")
    consider(buffer, "b=2\nanswer=1")
    assert buffer.partially_correct == (Solution.parse("b=2"),)
    assert Solution.parse("a=2") not in buffer.prefixes_by_state["2"]
    consider(buffer, "n0=10\nn1=5\nt0=n0+n1\nanswer=n0+t0")
    consider(buffer, "n1=10\nn0=5\nt0=n0+n1\nanswer=n1+t0")
    assert buffer.fully_correct[0] == OIL.reference
    assert buffer.fully_correct[1] == Solution.parse("n1=10\nn0=5\nt0=n0+n1\nanswer=n1+t0")


def test_without_a_reference_the_first_solution_is_forgotten_like_the_others():
    buffer = SolutionBuffer.seeded(Problem("p", "?", 25), Rules(max_solutions=1))
    consider(buffer, "answer=25")
    consider(buffer, "a=5\nanswer=a*a")
    assert buffer.fully_correct == (Solution.parse("a=5\nanswer=a*a"),)


def test_when_each_solution_was_found_is_kept():
    buffer = SolutionBuffer.seeded(OIL)
    buffer.consider(trace("n0=10\nn1=2\nanswer=1"), step=7)
    assert buffer.found == {OIL.reference: 0, Solution.parse("n0=10\nn1=2"): 7}


def test_json_round_trips_exactly():
    buffer = SolutionBuffer.seeded(OIL, Rules(dedup="alpha", length_tolerance=1))
    consider(buffer, "n0=10\nn1=2\nanswer=1")
    text = json.dumps(buffer.to_json())
    restored = SolutionBuffer.from_json(OIL, json.loads(text))
    assert json.dumps(restored.to_json()) == text
    assert restored.prefixes_by_state == buffer.prefixes_by_state
    assert restored.rules == buffer.rules


@pytest.mark.parametrize(
    ("reference", "flaw"),
    [
        ("x = 1 / 0\nanswer = x", "step 1 fails: ZeroDivisionError"),
        ("x = 25", "never assigns 'answer'"),
        ("answer = 24", "gives 24, but the answer is 25"),
    ],
)
def test_a_reference_that_does_not_give_the_answer_is_an_error(reference: str, flaw: str):
    with pytest.raises(ProblemError, match=f"problem oil: .*{flaw}"):
        SolutionBuffer.seeded(Problem("oil", "?", 25, reference))


DROP = Rules(dead_ends="drop")


@pytest.mark.parametrize(
    ("reference", "sample", "by_the_paper", "dropped"),
    [
        # All values of a whole solution, and no step left to give the answer.
        ("a=2\nb=3\nanswer=a*b", "x=2\ny=3\nz=x*y\nanswer=1", "x=2\ny=3\nz=x*y", "x=2\ny=3"),
        # Somewhere else the same values lead on.
        ("a=6\nb=a\nanswer=b", "x=6\ny=6\nanswer=1", "x=6\ny=6", "x=6\ny=6"),
        # Without the import the rest would fail.
        ("import math\na=4\nanswer=math.sqrt(a)", "x=4\nanswer=1", "x=4", ""),
        ("def f(x): return x\na=4\nanswer=f(a)", "x=4\nanswer=1", "x=4", ""),
        ("import math\na=9\nanswer=math.sqrt(a)", "import math\nx=9\nanswer=1", *["import math\nx=9"] * 2),
    ],
)
def test_beginnings_that_lead_nowhere_are_kept_only_as_the_paper_does(
    reference, sample, by_the_paper, dropped
):
    problem = Problem("p", "?", trace(reference).answer, reference)
    for rules, kept in ((Rules(), by_the_paper), (DROP, dropped)):
        buffer = SolutionBuffer.seeded(problem, rules)
        verdict = buffer.consider(trace(sample))
        assert verdict is (Verdict.NEW_PARTIALLY_CORRECT if kept else Verdict.INCORRECT)
        assert buffer.partially_correct == ((Solution.parse(kept),) if kept else ())


def test_a_right_solution_is_kept_whatever_its_states():
    buffer = SolutionBuffer.seeded(Problem("p", "?", 2, "import math\na=4\nanswer=math.sqrt(a)"), DROP)
    assert buffer.consider(trace("a=4\nanswer=a/2")) is Verdict.NEW_FULLY_CORRECT
    assert buffer.consider(trace("b=4\nanswer=b")) is Verdict.NEW_PARTIALLY_CORRECT  # it needs no import


def test_what_a_file_claims_is_not_believed():
    buffers = seed_buffers([OIL])
    claims = [
        {"kind": "fully_correct", "steps": ["answer = 24"], "states": ["25"], "found": 3},
        {"kind": "fully_correct", "steps": ["t0 = 10 * 2", "answer = t0 + 5"], "states": ["1"], "found": 2},
        {"kind": "fully_correct", "steps": ["import os", "os.remove('x')", "answer = 25"], "found": 1},
        {"kind": "partially_correct", "steps": ["n0 = = 10"], "found": 1},
    ]
    verdicts = reconsider(buffers, [{"id": "oil", "solutions": claims}])
    assert verdicts == {
        Verdict.INCORRECT: 1,
        Verdict.NEW_FULLY_CORRECT: 1,
        Verdict.NOT_EXECUTABLE: 2,
    }
    assert [solution.text for solution in buffers["oil"].fully_correct] == [
        OIL.reference.text,
        "t0 = 10 * 2\nanswer = t0 + 5",
    ]


@pytest.mark.parametrize(
    "row", [{}, [], {"id": "oil", "solutions": [{"steps": [1]}]}, {"id": "oil", "solutions": 3}]
)
def test_rows_of_another_shape_are_refused(row):
    with pytest.raises(ProblemError, match="no saved solutions"):
        reconsider(seed_buffers([OIL]), [row])


def test_a_beginning_may_come_before_what_makes_it_right():
    beginning, other = "b = 20\na = 5", "a = 5\nb = 20\nanswer = a + b"
    assert reconsider(seed_buffers([OIL]), rows_of(OIL, beginning)) == {Verdict.INCORRECT: 1}
    buffers = seed_buffers([OIL])
    verdicts = reconsider(buffers, rows_of(OIL, beginning, other))
    assert verdicts == {Verdict.NEW_FULLY_CORRECT: 1, Verdict.NEW_PARTIALLY_CORRECT: 1}
    assert [solution.text for solution in buffers["oil"].partially_correct] == [beginning]


def test_saved_solutions_are_judged_in_the_order_in_which_they_were_found():
    first, second, third = (f"n0 = {n}\nanswer = n0 + {25 - n}" for n in (3, 2, 1))
    for found in ((9, 1, 5), (1, 1, 1), (5, 2, 2)):
        rows = [
            {"steps": text.split("\n"), "found": step}
            for text, step in zip((first, second, third), found, strict=True)
        ]
        buffers = seed_buffers([OIL], Rules(max_solutions=2))
        assert reconsider(buffers, [{"id": "oil", "solutions": rows}]) == {Verdict.NEW_FULLY_CORRECT: 3}
        last = max(zip(found, range(3), strict=True))[1]  # of those found in one step the last in the file
        assert buffers["oil"].fully_correct[1].text == (first, second, third)[last]


def test_saved_solutions_of_other_problems_are_passed_over():
    seven = Problem("7", "How many?", 7)
    rows = [*rows_of(OIL, "answer = 25"), {"id": 7, "solutions": [{"steps": ["answer = 7"]}]}]
    buffers = seed_buffers([seven])
    assert reconsider(buffers, rows[:1]) == {}
    assert reconsider(buffers, rows) == {Verdict.NEW_FULLY_CORRECT: 1}, "an id may be a number in a file"


def test_buffers_are_seeded_and_saved_solutions_run_in_the_language_of_the_problems():
    calls = []

    class Counting(PythonLanguage):
        def trace_all(self, pairs):
            calls.append(len(pairs))
            return super().trace_all(pairs)

    language = Counting("result")
    problems = [Problem(f"p{n}", "?", n, Solution((f"result = {n}",))) for n in (4, 5)]
    buffers = seed_buffers([*problems, Problem("weak", "?", 6)], language=language)
    assert calls == [2], "all references in one batch"
    assert all(buffer.language is language for buffer in buffers.values())
    row = {
        "id": "p4",
        "solutions": [{"steps": ["n0 = 3", "result = n0 + 1"]}, {"steps": ["n0 = 4", "answer = n0"]}],
    }
    assert reconsider(buffers, [row]) == {Verdict.TOO_LONG: 1, Verdict.NEW_PARTIALLY_CORRECT: 1}
