"""Live values: which beginnings can be completed, how, and what the buffer makes of it."""

import json
import tracemalloc
from dataclasses import replace

import pytest

from languages import Expressions
from partway import PYTHON, Problem, Solution, SolutionBuffer, Verdict, trace
from partway.buffer import Rules
from partway.buffer.useless import dead_ends, renamings

OIL = Problem("oil", "Ellie has found an old bicycle ...", 25, "n0=2\nn1=10\nn2=5\nt0=n0*n1\nanswer=t0+n2")
LIVE = Rules(equivalence="live")
STITCH = Rules(equivalence="live", stitch=True)


def consider(buffer: SolutionBuffer, text: str) -> Verdict:
    return buffer.consider(trace(text, buffer.programs))


def kept(sample: str, rules: Rules = LIVE, problem: Problem = OIL) -> tuple[Verdict, SolutionBuffer]:
    buffer = SolutionBuffer.seeded(problem, rules)
    return consider(buffer, sample), buffer


def completion(sample: str, reference: str, rules: Rules = LIVE) -> tuple[str, ...]:
    problem = Problem("p", "?", trace(reference).answer, reference)
    verdict, buffer = kept(sample, rules, problem)
    assert verdict is Verdict.NEW_PARTIALLY_CORRECT
    (witness,) = buffer.witnesses.values()
    return witness.completion


def test_a_beginning_without_an_unneeded_value_is_right_by_its_live_values():
    sample = "n2=5\nt0=10*2\nx=7\nanswer=0"
    assert kept(sample, Rules())[0] is Verdict.INCORRECT
    verdict, buffer = kept(sample)
    assert verdict is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution.parse("n2=5\nt0=10*2\nx=7"),)  # 3 + 1 <= 5
    (witness,) = buffer.witnesses.values()
    assert witness.solution == OIL.reference.steps
    assert witness.position == 4
    assert witness.completion == ("answer = t0 + n2",)


def test_the_completion_must_fit_the_length_limit():
    sample = "x=7\ny=8\nn2=5\nz=9\nt0=10*2\nanswer=0"
    assert kept(sample)[0] is Verdict.TOO_LONG
    assert kept(sample, replace(LIVE, length_tolerance=1))[0] is Verdict.NEW_PARTIALLY_CORRECT


def test_the_rest_is_said_in_the_variables_of_the_sample():
    assert completion("a=10\nb=2\nt0=a+b\nanswer=0", "x=2\ny=10\nz=x*y\nu=z+y\nanswer=u+x") == (
        "z = b * a",
        "u = z + a",
        "answer = u + b",
    )


def test_fresh_names_where_they_would_collide():
    rest = completion("x=10\nt0=2\nanswer=0", "t0=10\nn1=2\nt1=t0*n1\nt0=t1+n1\nanswer=t0+t1")
    assert rest == ("t1 = x * t0", "x = t1 + t0", "answer = x + t1")


def test_equal_values_may_share_a_variable_and_a_shared_one_is_not_overwritten():
    rest = completion("x=4\nanswer=0", "a=4\nb=4\na=a+1\nanswer=a*b")
    assert rest[-1] == "answer = a * x"
    assert rest[0].startswith("a = x + 1")


def test_updates_in_place_stay_in_place():
    rest = completion("s=4\nk=3\nanswer=0", "a=4\nb=3\na+=b\nanswer=a*b")
    assert rest == ("s += k", "answer = s * k")


def test_loops_and_branches_are_completed_too():
    reference = "n=4\ntotal=0\nfor i in range(n):\n    total = total + i\nanswer=total*n"
    assert completion("k=4\nt=0\nanswer=0", reference) == (
        "for i in range(k):\n    t = t + i",
        "answer = t * k",
    )


def test_modules_are_needed_as_the_known_solution_has_them():
    reference = "import math\na=16\nb=2\nanswer=math.sqrt(a)*b"
    assert completion("import math\nb=2\na=16\nanswer=0", reference) == ("answer = math.sqrt(a) * b",)
    verdict, _ = kept("b=2\na=16\nanswer=0", problem=Problem("p", "?", 8, reference))
    assert verdict is Verdict.INCORRECT or verdict is Verdict.TOO_LONG


def test_a_beginning_kept_is_a_way_for_others():
    buffer = SolutionBuffer.seeded(OIL, LIVE)
    assert consider(buffer, "n2=5\nt0=20\nanswer=0") is Verdict.NEW_PARTIALLY_CORRECT
    assert consider(buffer, "n2=5\nt0=20\nanswer=1") is Verdict.KNOWN_PARTIALLY_CORRECT
    assert consider(buffer, "m=20\nk=5\nanswer=1") is Verdict.NEW_PARTIALLY_CORRECT
    assert consider(buffer, "v=5\nanswer=1") is Verdict.NEW_PARTIALLY_CORRECT  # begins as the first does


def test_what_the_reference_reads_may_be_unknown_and_then_the_rule_is_exact():
    problem = Problem("p", "?", 6, "n0=2\nf = lambda x: x * n0\nanswer=f(3)")
    buffer = SolutionBuffer.seeded(problem, LIVE)
    assert buffer.falls_back
    assert consider(buffer, "m=2\nanswer=0") is Verdict.NEW_PARTIALLY_CORRECT
    assert not buffer.witnesses
    assert not SolutionBuffer.seeded(OIL, LIVE).falls_back


def test_a_language_that_does_not_say_what_is_live_stays_exact():
    toy = Expressions()
    problem = Problem("p", "?", 6, toy.parse("1 + 2\n_ * 2"))
    assert SolutionBuffer.seeded(problem, LIVE, toy).falls_back


def test_dead_ends_are_kept_by_the_papers_letter_and_dropped_on_request():
    problem = Problem("p", "?", 5, "a=2\nanswer=a+3")
    sample = "x=5\ny=2\nanswer=0"  # {5, 2} is the reference's last state, and nothing can follow it
    assert kept(sample, Rules(), problem)[0] is Verdict.NEW_PARTIALLY_CORRECT
    assert kept(sample, Rules(dead_ends="drop"), problem)[0] is Verdict.INCORRECT
    assert kept(sample, LIVE, problem)[0] is not Verdict.NEW_PARTIALLY_CORRECT
    other = "y=2\nanswer=0"
    assert kept(other, Rules(dead_ends="drop"), problem)[0] is Verdict.NEW_PARTIALLY_CORRECT


def test_kept_dead_ends_are_those_that_no_kept_solution_completes():
    """One ends where the reference ends without its answer, one goes on as it does, one lacks its import."""
    buffer = SolutionBuffer.seeded(Problem("p", "?", 5, "import math\na=2\nb=9\nc=math.sqrt(b)\nanswer=a+c"))
    for sample in (
        "import math\nb=9\na=2\nc=5.0\nd=3.0\nanswer=0",
        "import math\na=2\nx=9\nanswer=0",
        "a=2\nb=9\nanswer=0",
    ):
        assert consider(buffer, sample) is Verdict.NEW_PARTIALLY_CORRECT
    ends, leads_on, lacks = buffer.partially_correct
    assert dead_ends(buffer) == (ends, lacks)
    assert consider(buffer, f"{leads_on}\nanswer=a+math.sqrt(x)") is Verdict.NEW_FULLY_CORRECT
    assert dead_ends(buffer) == (ends, lacks)
    assert dead_ends(SolutionBuffer.seeded(buffer.problem)) == ()


def test_kept_renamings_are_known_beginnings_with_other_names():
    buffer = SolutionBuffer.seeded(OIL)
    for sample in ("x=2\ny=10\nanswer=0", "n1=10\nn0=2\nanswer=0", "a=10\nb=2\nanswer=0"):
        assert consider(buffer, sample) is Verdict.NEW_PARTIALLY_CORRECT
    of_reference, _, of_another = buffer.partially_correct
    assert renamings(buffer) == (of_reference, of_another)


def test_a_stitched_solution_is_kept_apart_and_its_beginning_can_be_continued():
    buffer = SolutionBuffer.seeded(OIL, STITCH)
    assert consider(buffer, "n2=5\nt0=20\nanswer=0") is Verdict.NEW_STITCHED
    assert buffer.stitched == (Solution.parse("n2=5\nt0=20\nanswer=t0+n2"),)
    assert buffer.partially_correct == ()
    assert buffer.beginnings == (Solution.parse("n2=5\nt0=20"),)
    assert consider(buffer, "n2=5\nt0=20\nanswer=1") is Verdict.KNOWN_PARTIALLY_CORRECT
    assert consider(buffer, "n2=5\nt0=20\nanswer=t0+n2") is Verdict.KNOWN_FULLY_CORRECT
    assert consider(buffer, "n2=5\nt0=20\nanswer=n2+t0") is Verdict.NEW_FULLY_CORRECT
    assert buffer.beginnings == ()  # it led to a solution; nothing is left to find there


def test_stitching_works_with_exact_states_too():
    buffer = SolutionBuffer.seeded(OIL, Rules(stitch=True))
    assert consider(buffer, "a=10\nb=2\nanswer=0") is Verdict.NEW_STITCHED
    assert buffer.stitched == (Solution.parse("a=10\nb=2\nn2=5\nt0=b*a\nanswer=t0+n2"),)


def test_stitched_duplicates_up_to_renaming_stay_beginnings():
    buffer = SolutionBuffer.seeded(OIL, replace(STITCH, dedup="alpha"))
    assert consider(buffer, "a=2\nb=10\nanswer=0") is Verdict.KNOWN_PARTIALLY_CORRECT


@pytest.mark.parametrize("rules", [LIVE, STITCH, Rules(stitch=True), Rules(dead_ends="drop")])
def test_witnesses_and_seams_are_saved_and_old_files_still_read(rules: Rules):
    buffer = SolutionBuffer.seeded(OIL, rules)
    consider(buffer, "a=10\nb=2\nanswer=0")
    consider(buffer, "n2=5\nt0=20\nanswer=0")
    text = json.dumps(buffer.to_json())
    restored = SolutionBuffer.from_json(OIL, json.loads(text))
    assert json.dumps(restored.to_json()) == text
    assert restored.beginnings == buffer.beginnings
    assert restored.witnesses == buffer.witnesses
    for sample in ("m=20\nk=5\nanswer=1", "a=10\nb=2\nc=5\nanswer=0"):
        assert consider(restored, sample) is consider(buffer, sample)
    old = {**json.loads(text), "rules": {"dedup": "ast", "length_tolerance": 0}}
    assert SolutionBuffer.from_json(OIL, old).rules == Rules()


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_a_cap_bounds_what_live_and_stitched_keep(cap: int):
    for rules in (LIVE, STITCH):
        buffer = SolutionBuffer.seeded(OIL, replace(rules, max_solutions=cap))
        for sample in ("n2=5\nt0=20\nanswer=0", "m=20\nk=5\nanswer=1", "a=10\nb=2\nanswer=0"):
            consider(buffer, sample)
        assert len(buffer) == cap
        assert buffer.fully_correct[0] == OIL.reference
        json.dumps(buffer.to_json())
        assert all(PYTHON.is_correct(trace(s), 25) for s in buffer.stitched)


def test_a_completion_that_does_not_give_the_answer_is_not_kept():
    reference = "n=3\nk=2\nanswer=sum(range(n))*k"
    problem = Problem("p", "?", 6, reference)
    sample = "a=3.0\nb=2\nanswer=0"  # 3.0 is the same value as 3, but range does not take it
    assert kept(sample, Rules(), problem)[0] is Verdict.NEW_PARTIALLY_CORRECT
    verdict, buffer = kept(sample, LIVE, problem)
    assert not verdict.is_new
    assert len(buffer) == 1


def test_a_sample_of_two_thousand_variables_costs_little():
    found = trace("".join(f"a{n}=1\n" for n in range(2000)))
    buffer = SolutionBuffer.seeded(OIL, LIVE)
    tracemalloc.start()
    buffer.consider(found)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
