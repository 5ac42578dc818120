"""Right by luck: solutions that differ from the reference once the question's numbers are changed."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from languages import Expressions

from mathdata.gsm8k import convert_gsm8k
from mathdata.mathqa import convert_mathqa
from mathdata.raw import GSM8K, MATHQA, read_raw
from partway import PYTHON, Problem, PythonLanguage, Solution, SolutionBuffer, Verdict, trace
from partway.beyond import luck, variation
from partway.beyond.luck import audit_together
from partway.beyond.variation import numbers_in, strange_literals
from partway.buffer import Rules
from partway.evaluation import EvaluationPlan, Judged, evaluate
from partway.evaluation.samples import whole
from partway.language.named import language_of
from partway.models.engine import Engine

PENS = "50 pens cost 3 dollars each and 8 books 4; what do the pens cost?"
REFERENCE = "n0=50\nn1=3\nanswer=n0*n1"


def audit(question: str, reference: str, solution: str) -> tuple[str, str]:
    problem = Problem("p", question, None, reference)
    found = variation.audit(problem, Solution.parse(solution), PYTHON)
    return found.verdict, found.reason


@pytest.mark.parametrize(
    ("question", "reference", "solution", "verdict"),
    [
        (PENS, REFERENCE, "a=50\nanswer=a+a+a", "confirmed"),
        (PENS, REFERENCE, "n0=30\nn1=5\nanswer=n0*n1", "spurious"),  # numbers that stand nowhere
        (PENS, REFERENCE, "answer=150", "spurious"),
        (PENS, REFERENCE, "a=50\nb=8\nanswer=a*(b-5)", "confirmed"),  # 8 is no input of the reference
        ("10 of 4", "a=10\nb=4\nanswer=a-b", "a=10\nb=4\nanswer=b+2", "spurious"),
        ("10 of 2", "a=10\nb=2\nanswer=a*b", "a=10\nanswer=a+a", "confirmed"),  # 1, 2 and 3 stay
        ("10 apples", "a=10\nanswer=a", "a=10\nanswer=a*1", "confirmed"),
        ("60 km in 4 hours", "a=60\nb=4\nanswer=a/b", "a=60\nb=4\nanswer=a//b", "confirmed"),
        ("5 boxes of 5 pens", "a=5\nb=5\nanswer=a*b+a", "x=5\ny=5\nanswer=y+y*x", "confirmed"),
        ("5 boxes of 5 pens", "a=5\nb=5\nanswer=a*b", "x=5\nanswer=x*x", "undecided"),
        ("5 boxes of 5 pens", "a=5\nb=5\nanswer=a*b", "x=5\nanswer=x+20", "spurious"),
        ("5 boxes, each 6", "answer=5*6+5*6", "x=5\ny=6\nanswer=x*y*2", "confirmed"),  # the 5 stands once
        ("20% of 40", "answer=40*0.2", "a=20\nb=40\nanswer=b*a/100", "confirmed"),
        ("20% more than 40", "answer=40+40*20/100", "answer=40*1.2", "confirmed"),
        ("8 cm in 4 weeks", "answer=8*6/4", "a=8\nanswer=a*6*0.25", "confirmed"),
        ("8 cm in 4 weeks", "answer=8*6/4", "a=8\nanswer=a*6*0.5*0.5", "spurious"),
        ("a dozen for 7 days", "answer=12*7", "answer=7*12", "confirmed"),
        ("half of it", "answer=0.5*2", "answer=1.0", "undecided"),
        ("9 and 4", "import math\nanswer=math.sqrt(9-4)", "answer=(9-4)**0.5", "confirmed"),
        ("9 and 4", "answer=36/(9-4)", "answer=36/(9-5+1)", "spurious"),
        ("20% of 40", "answer=40*0.2", "answer=40/5", "spurious"),  # 0.2 is the 20%
        ("60 in 4", "a=60\nb=4\nanswer=round(a/b, 1)", "a=60\nb=4\nanswer=a/b", "spurious"),
        ("60 in 4", "a=60\nb=4\nanswer=a//b|1", "a=60\nb=4\nanswer=a//b", "spurious"),  # `|` of whole numbers
        # Draws that take more than there is say nothing, unless the question does so itself.
        ("10 less 9", "a=10\nb=9\nanswer=a-b", "a=10\nb=9\nanswer=abs(a-b)", "confirmed"),
        ("4 less 100", "a=4\nb=100\nanswer=a-b", "a=4\nb=100\nanswer=-(b-a)", "confirmed"),
        # Draws with which the solution fails say nothing, and too few others not enough.
        ("50 and 3", "answer=50*3", "a=50\nanswer=a*3 if a%2==0 else 1/0", "confirmed"),
        ("50", "a=50\nanswer=a if a%10==0 else a/0", "a=50\nanswer=a*1 if a%10==0 else a/0", "undecided"),
        ("5 of 5 of 5 of 5", "answer=5+5*5-5", "answer=5*5+5-5", "undecided"),  # in more than 64 ways
    ],
)
def test_what_other_numbers_tell(question: str, reference: str, solution: str, verdict: str):
    assert audit(question, reference, solution)[0] == verdict


@pytest.mark.parametrize("number", range(20, 120, 10))
def test_one_draw_that_agrees_does_not_confirm(number: int):
    code = f"n0={number}\nanswer=n0 if n0 % 2 == 0 else 0"
    assert audit(f"{number} pens", f"answer={number}*1", code)[0] == "spurious"


@pytest.mark.parametrize("number", range(20, 120, 10))
def test_one_draw_on_which_all_agree_makes_no_group(number: int):
    asked = Problem("p", f"{number} pens?", number)
    codes = ("answer=a", "answer=a+0", "answer=a if a % 2 == 0 else 0")
    solutions = tuple(Solution.parse(f"a={number}\n{code}") for code in codes)
    found = [one.verdict for one in audit_together(asked, solutions, PYTHON).values()]
    assert found == ["confirmed", "confirmed", "spurious"]


def test_a_verdict_and_its_reason_are_the_same_whenever_they_are_asked_for():
    first, again = (audit(PENS, REFERENCE, "n0=30\nn1=5\nanswer=n0*n1") for _ in range(2))
    assert first == again


def test_programs_that_are_too_long_to_be_run_a_hundred_times_are_undecided():
    long = "a=50\n" + "b=0\n" * 1_000 + "answer=a*3"
    for reference, solution in ((long, REFERENCE), (REFERENCE, long)):
        verdict, reason = audit(PENS, reference, solution)
        assert (verdict, reason) == ("undecided", "a program of more than 4,000 characters is not run again")


def test_numbers_that_everybody_knows_are_not_strange():
    known, strange = (
        (0.5, 7, 10, 12, 24, 52, 60, 100, 365, 1000, 0, 1, 2, 3),
        (0.6, 5, 11, 25, 30, 99, 10_000),
    )
    text = "\n".join(f"a={number}" for number in (*known, *strange))
    assert strange_literals(Solution.parse(f"{text}\nanswer=a"), "How many?") == strange


def test_the_reason_names_the_numbers():
    verdict, reason = audit("He has 10 and gives 4", "a=10\nb=4\nanswer=a-b", "a=10\nb=4\nanswer=b+2")
    assert verdict == "spurious"
    assert reason.startswith("with ")
    assert " instead of 10 it gives 6, the reference " in reason
    assert audit("half", "answer=1", "answer=1")[1].startswith("the reference takes no number")


def test_numbers_are_read_as_people_write_them():
    known = numbers_in("Twenty-one of 1,200 at $2.50, 15% off, in 2010. Seven?")
    assert dict(known.counts) == {21: 1, 1200: 1, 2.5: 1, 15: 1, 2010: 1, 7: 1}
    assert known.percents == {15}
    assert dict(numbers_in("Ten-four, and ninety-nine").counts) == {10: 1, 99: 1}
    assert strange_literals(Solution.parse("a=0.85\nb=1200\nc=9\nanswer=100*3"), "1,200 at 15% off") == (9,)


def test_a_language_or_a_checker_that_cannot_be_varied_is_undecided():
    solution = Solution(("1 + 1",))
    for language in (Expressions(), language_of({"language": "python-tests"})):
        problem = Problem("p", "1", 2, solution)
        assert variation.audit(problem, solution, language).verdict == "undecided"


class Shelves(PythonLanguage):
    """Programs find in `n` what stands on the shelf; luck shows itself on other shelves."""

    def trace_all(self, pairs):
        return super().trace_all([(one, f"n = {one.context}\n{text}") for one, text in pairs])

    def variations(self, problem):
        return [replace(problem, context=n) for n in (0, 4, 9)]

    def strange_literals(self, solution, question):
        return ()


@pytest.mark.parametrize(
    ("solution", "reason"),
    [
        ("answer = 40 / (n + n)", ""),  # with nothing on the shelf the reference fails, which tells nothing
        ("answer = 4", "in another context (number 2) it gives 4, the reference 5"),
        ("answer = 4 + 0 / (n - 4)", "in another context (number 2) it gives None, the reference 5"),
        (
            "answer = 20 / n if n < 9 else 2",
            "in another context (number 3) it gives 2, the reference 2.22222",
        ),
    ],
)
def test_what_other_contexts_tell(solution: str, reason: str):
    problem = Problem("p", "20 things?", 4, "answer = 20 / n", context=5)
    found = variation.audit(problem, Solution.parse(solution), Shelves())
    assert (found.verdict, found.reason) == ("spurious" if reason else "confirmed", reason)


def judge(rules: Rules, text: str, reference: str | None = REFERENCE) -> tuple[Verdict, SolutionBuffer]:
    buffer = SolutionBuffer.seeded(Problem("pens", PENS, 150, reference), rules)
    return buffer.consider(trace(text)), buffer


def test_spurious_solutions_are_kept_flagged_or_dropped():
    lucky = "n0=30\nn1=5\nanswer=n0*n1"
    assert judge(Rules(), lucky)[0] is Verdict.NEW_FULLY_CORRECT
    verdict, buffer = judge(Rules.of({"spurious": "flag"}), lucky)
    assert verdict is Verdict.NEW_FULLY_CORRECT
    assert list(buffer.doubts) == [Solution.parse(lucky)]
    assert len(buffer.learned) == 2
    restored = SolutionBuffer.from_json(buffer.problem, buffer.to_json())
    assert restored.doubts == buffer.doubts
    verdict, buffer = judge(Rules.of({"spurious": "drop"}), lucky)
    assert verdict is Verdict.SPURIOUS
    assert len(buffer) == 1
    assert judge(Rules.of({"spurious": "drop"}), "a=3\nb=50\nanswer=a*b")[0] is Verdict.NEW_FULLY_CORRECT


def test_the_beginnings_of_a_spurious_solution_are_considered():
    verdict, buffer = judge(Rules.of({"spurious": "drop"}), "a=50\nb=100\nanswer=a+b")
    assert verdict is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution.parse("a=50"),)


def test_only_right_solutions_are_asked_for_luck():
    drop = Rules.of({"spurious": "drop"})
    assert judge(drop, "n0=7\nanswer=n0")[0] is Verdict.INCORRECT
    assert judge(drop, "n0=30\nn1=5\nc=7\nanswer=n0*n1")[0] is Verdict.TOO_LONG, "right and too long first"
    assert judge(drop, "n0=30\nn1=5\nanswer=n0+n1")[0] is Verdict.INCORRECT


def test_what_cannot_be_decided_is_kept_and_not_doubted():
    problem = Problem("boxes", "5 boxes of 5 pens", 25, "a=5\nb=5\nanswer=a*b")
    square = "x=5\nanswer=x*x"
    assert audit(problem.question, problem.reference.text, square)[0] == "undecided"
    for spurious in ("flag", "drop"):
        buffer = SolutionBuffer.seeded(problem, Rules.of({"spurious": spurious}))
        assert buffer.consider(trace(square)) is Verdict.NEW_FULLY_CORRECT
        assert (buffer.doubts, len(buffer.learned)) == ({}, 2)


def test_a_reference_is_believed_whatever_its_numbers():
    problem = Problem("pens", PENS, 450, "n0=50\nn1=9\nanswer=n0*n1")  # 9 stands nowhere
    for spurious in ("flag", "drop"):
        buffer = SolutionBuffer.seeded(problem, Rules.of({"spurious": spurious}))
        assert (buffer.doubts, buffer.learned) == ({}, (problem.reference,))


def test_where_tests_say_what_is_right_nothing_is_said_of_luck():
    language = language_of({"language": "python-tests"})
    problem = Problem("p", PENS, ["assert f(1) == 1"], REFERENCE)
    samples = [(Judged(whole("p", "answer=150"), True, "passed"), trace("answer=150"))]
    assert [one.lucky for one in luck.audited(problem, samples, language)] == [None]
    assert [one.lucky for one in luck.audited(problem, samples, PYTHON)] == [True]


def test_doubts_are_those_of_training_or_else_found_now():
    lucky = Solution.parse("n0=30\nn1=5\nanswer=n0*n1")
    for spurious in ("keep", "flag"):
        _, buffer = judge(Rules.of({"spurious": spurious}), lucky.text)
        assert list(luck.doubts_of(buffer)) == [lucky]
        assert [one.verdict for one in luck.audits_of(buffer).values()] == ["spurious"], "not the reference"
    _, buffer = judge(Rules.of({"spurious": "flag"}), lucky.text)
    saved = buffer.to_json()
    saved["solutions"][1]["flag"] = "as training said"
    assert luck.doubts_of(SolutionBuffer.from_json(buffer.problem, saved)) == {lucky: "as training said"}
    _, buffer = judge(Rules(), lucky.text, None)
    assert luck.doubts_of(buffer) == {}, "without a reference training has to ask"
    assert [one.verdict for one in luck.audits_of(buffer).values()] == ["spurious"]


def test_without_a_reference_numbers_from_nowhere_are_doubted_and_the_largest_group_believed():
    lucky = "n0=30\nn1=5\nanswer=n0*n1"
    _, buffer = judge(Rules.of({"spurious": "flag"}), lucky, None)
    assert "30, 5 stands nowhere" in next(iter(buffer.doubts.values()))
    verdict, buffer = judge(Rules.of({"spurious": "drop"}), lucky, None)
    assert verdict is Verdict.SPURIOUS
    assert len(buffer) == 0
    for text in ("a=50\nb=3\nanswer=a*b", "a=50\nanswer=a+100", "b=3\na=50\nanswer=b*a"):
        assert buffer.consider(trace(text)) is Verdict.NEW_FULLY_CORRECT
    assert set(buffer.learned) == {
        Solution.parse("a=50\nb=3\nanswer=a*b"),
        Solution.parse("b=3\na=50\nanswer=b*a"),
    }


def together(*texts: str) -> list[tuple[str, str]]:
    found = audit_together(Problem("pens", PENS, 150), tuple(map(Solution.parse, texts)), PYTHON)
    return [(one.verdict, one.reason) for one in found.values()]


def test_solutions_without_a_reference_are_audited_by_what_most_of_them_answer():
    times, turned, plus = "a=50\nb=3\nanswer=a*b", "b=3\na=50\nanswer=b*a", "a=50\nanswer=a+100"
    assert [verdict for verdict, _ in together(times, plus, turned)] == ["confirmed", "spurious", "confirmed"]
    assert (
        together(times, plus, turned)[1][1] == "2 others answer differently when numbers or rows are changed"
    )
    assert together(times) == [
        ("undecided", "there is neither a reference nor another solution to compare with")
    ]
    as_many = "as many others answer differently when numbers or rows are changed"
    assert together(times, plus) == [("undecided", as_many)] * 2
    assert together(times, plus, turned, "b=50\nanswer=100+b") == [("undecided", as_many)] * 4
    lucky = together(times, turned, "answer=151-1")
    assert lucky[2] == ("spurious", "151 stands nowhere in the question")
    for other in (
        "a=50\nanswer=a+a+a",
        "a=50\nb=3\nanswer=a/12/7/365*b*365*7*12",
    ):  # 3 stays; floats are rounded
        assert [verdict for verdict, _ in together(times, other)] == ["confirmed"] * 2
    assert together() == []


def test_where_groups_are_as_large_none_is_doubted():
    _, buffer = judge(Rules.of({"spurious": "drop"}), "a=50\nb=3\nanswer=a*b", None)
    assert buffer.consider(trace("a=50\nanswer=a+100")) is Verdict.NEW_FULLY_CORRECT
    assert len(buffer.learned) == 2


@pytest.fixture(scope="module")
def references(real_data: Path) -> list[Problem]:
    """One in `PARTWAY_EVERY` (12 unless told otherwise) of the rows; 1 takes all of them, in a minute."""
    every = int(os.environ.get("PARTWAY_EVERY", "12"))
    gsm8k = read_raw(GSM8K, real_data / "gsm8k")
    mathqa = {split: list(rows) for split, rows in read_raw(MATHQA, real_data / "mathqa").items()}
    converted = [
        convert_gsm8k(list(gsm8k["train"])[::every], list(gsm8k["test"])[::every]),
        convert_mathqa({name: rows[:: every * every] for name, rows in mathqa.items()}),
    ]
    problems = [p for one in converted for split in one.splits.values() for p in split]
    return [problem for problem in problems if problem.reference is not None]


@pytest.mark.slow
def test_no_reference_of_real_data_is_right_by_luck(references: list[Problem]):
    found = [variation.audit(p, p.reference, PYTHON) for p in references]
    assert "spurious" not in {audit.verdict for audit in found}
    assert all(audit.reason for audit in found if audit.verdict == "undecided")
    assert sum(audit.verdict == "confirmed" for audit in found) > 0.9 * len(found)


FIVE = Problem(
    id="p", question="5 boxes of 7 pens, 20% red", answer=36, reference="n0=5\nn1=7\nanswer=n0*n1+1"
)


@pytest.mark.parametrize(
    "code",
    [
        f"x={'9' * 400}\nanswer=36",
        f"x={'9' * 4000}\nanswer=36",
        "from fractions import Fraction\nanswer=Fraction(36)",
        "from decimal import Decimal\nx=Decimal('NaN')\nanswer=36",
        "n0=5\nwhile n0!=4+1:\n    n0=n0\nanswer=36",
    ],
)
def test_no_right_solution_however_odd_stops_an_audit(code: str):
    seeded = {"rules": Rules.of({"spurious": "flag", "dedup": "alpha"})}
    found = trace(code)
    assert found.answer == 36
    for problem in (FIVE, Problem(id="p", question=FIVE.question, answer=36)):
        buffer = SolutionBuffer.seeded(problem, **seeded)
        assert buffer.consider(found) is not Verdict.INCORRECT
        assert set(buffer.doubts) <= {found.solution}


def test_a_solution_that_never_ends_for_other_numbers_is_given_up_at_once():
    started = time.monotonic()
    verdict, reason = audit("50 pens", "n0=50\nanswer=n0", "n0=50\nwhile n0!=49+1:\n    n0=n0\nanswer=n0")
    assert (verdict, reason) == ("undecided", "with other numbers it takes too long")
    assert time.monotonic() - started < 20  # of a hundred


def test_numbers_of_a_question_may_have_any_number_of_digits():
    assert numbers_in(f"{'9' * 5000} or {'9' * 400}.5 or 7").counts == {7: 1}
    assert strange_literals(Solution.parse(f"answer={'9' * 400}"), "5% of 7") == (int("9" * 400),)


class Scripted(Engine):
    """Draws the same texts for every problem, each so often."""

    def __init__(self, texts: dict[str, int]) -> None:
        self.texts = texts

    def complete(self, requests, settings, seed):
        return [[request.sample(text, n) for text, n in self.texts.items()] for request in requests]


def test_evaluations_tell_true_pass_at_k_and_audit_each_right_text_once(monkeypatch):
    audits = []
    monkeypatch.setattr(luck, "audit", lambda *of: audits.append(of[1].text) or variation.audit(*of))
    drawn = {REFERENCE: 2, "n0=50\nn1=3\nanswer=n1*n0": 1, "answer=150": 4, "answer=1": 3}
    problem = Problem("p", PENS, 150, REFERENCE)
    plan = EvaluationPlan(samples=10, ks=(1, 10), pass1_samples=0)
    found = {name: one.value for name, one in evaluate(Scripted(drawn), [problem], plan).metrics.items()}
    assert (found["pass@1"], found["true_pass@1"]) == pytest.approx((0.7, 0.3))
    assert sorted(audits) == ["answer = 150", "n0 = 50\nn1 = 3\nanswer = n1 * n0"], "not the reference itself"
    without = Problem("p", PENS, 150)
    assert not any("true" in name for name in evaluate(Scripted(drawn), [without], plan).metrics)
