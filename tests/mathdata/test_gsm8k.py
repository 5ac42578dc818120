"""GSM8K to programs: one test per rule on small texts, and the counts on the real files."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from mathdata.gsm8k import convert_gsm8k
from mathdata.gsm8k.tokens import MARK
from mathdata.raw import GSM8K, read_raw
from partway.data.conversion import Conversion
from partway.language import is_correct, trace, trace_all
from partway.problem import Problem

# Of what one process makes of the published files.
REAL_DIGEST = "d4bd10e68bb636b53be8f5b4d982c6dd9680a5e8148e8337fe06817d72dd7b1f"
OPERATORS = (" + ", " - ", " * ", " / ", "round(", "math.")


def row(question: str, solution: str, answer: str) -> dict[str, object]:
    return {"question": question, "answer": f"{solution}\n#### {answer}"}


def convert(question: str, solution: str, answer: str, style: str = "partway") -> Problem:
    return convert_gsm8k([], [row(question, solution, answer)], style=style).splits["test"][0]


def steps(question: str, solution: str, answer: str, style: str = "partway") -> list[str]:
    reference = convert(question, solution, answer, style).reference
    return [] if reference is None else list(reference.steps)


def test_annotations_become_steps_with_constants_first() -> None:
    solution = "Pens cost 2*10=$<<2*10=20>>20.\nWith the ruler, 20+5=$<<20+5=25>>25."
    problem = convert("2 pens cost 10 dollars each, a ruler 5. How much is it all?", solution, "25")
    assert problem.reference is not None
    assert list(problem.reference.steps) == [
        "n0 = 2", "n1 = 10", "n2 = 5", "t0 = n0 * n1", "answer = t0 + n2",
    ]  # fmt: skip
    assert problem.answer == 25
    assert problem.meta["rules"] == ["question", "question", "question", "annotation", "annotation"]
    assert problem.meta["sources"] == ["", "", "", "2*10=20", "20+5=25"]


READINGS = {
    "every annotation of a line": (
        "9 hens lay 2 eggs each, 3 break.",
        "They lay 9*2=<<9*2=18>>18 eggs and 18-3=<<18-3=15>>15 are left.",
        "15",
        ["t0 = n0 * n1", "answer = t0 - n2"],
    ),
    "an equation without annotation": (
        "A club of 465 loses 20 members.",
        "The club then has 465-20 = 445 members.",
        "445",
        ["answer = n0 - n1"],
    ),
    "unit words and slashes": (
        "A 4.8 L tank loses 1.2 L an hour.",
        "It lasts 4.8 L / 1.2 L/hour = 4 hours.",
        "4",
        ["answer = n0 / n1"],
    ),
    "operators in words": (
        "7 rows of 6 seats, 2 broken.",
        "There are 7 times 6 equals 42 seats.\nSo 42 minus 2 equals 40.",
        "40",
        ["t0 = n0 * n1", "answer = t0 - n2"],
    ),
    "brackets that multiply": (
        "Twice 19 less 6.",
        "Yellow: 19(2)-6=32 crayons",
        "32",
        ["answer = n0 * n1 - n2"],
    ),
    "mixed numbers": (
        "12 cups of 1 1/4 pints.",
        "That is 12 x 1 and 1/4 = 15 pints.",
        "15",
        ["answer = n0 * (n1 + n1 / n2)"],
    ),
    "a fraction that divides": (
        "6 km in 1/30 hour.",
        "The speed is 6 km / 1/30 hour = 180 km per hour.",
        "180",
        ["answer = n0 / (n1 / n2)"],
    ),
    "a chain of equals signs": (
        "2 sides of 225 and 2 of 125 feet.",
        "It is 2 * 225 + 2 * 125 = 450 + 250 = 700 feet.",
        "700",
        ["answer = n0 * n1 + n0 * n2"],
    ),
    "a constant annotation behind an equation": (
        "27 chairs in 3 rows.",
        "Each row has 27 / 3 = <<9=9>>9 chairs.",
        "9",
        ["answer = n0 / n1"],
    ),
    "a sum that words interrupt": (
        "570 seconds in all, 420 for 9 laps.",
        "That leaves 570 seconds in all - 420 seconds for the first 9 laps = 150 seconds.",
        "150",
        ["answer = n0 - n1"],
    ),
    "thousands apart": (
        "$80 000 at 20%.",
        "The fee is $80 000 x 20/100 = $16 000.",
        "16,000",
        ["answer = n0 * n1 / n2"],
    ),
    "unary minus": (
        "From -18 by -2.",
        "Then x = 9 because -18/-2=<<-18/-2=9>>9.",
        "9",
        ["answer = -n0 / -n1"],
    ),
    "sums of percents": (
        "30% win, 50% of the others draw.",
        "Of all, 100% - 30% = 70% do not win.\nSo 70% * 50% = 35% draw.",
        "35",
        ["t0 = n0 - n1", "answer = t0 * (n2 / n0)"],
    ),
    "a percent computed before": (
        "Of 60 fish 25% are red. How many are not?",
        "75% are not because 100 - 25 = <<100-25=75>>75.\nThat is 60 x .75 = <<60*.75=45>>45 fish.",
        "45",
        ["t0 = n0 - n1", "answer = n2 * (t0 / n0)"],
    ),
    "times 100 percent": (
        "4 of 5 doors are open. What percent?",
        "The share is 4/5 = <<4/5=.8>>.8.\nThis is .8 * 100% = 80%.",
        "80",
        ["t0 = n0 / n1", "answer = t0 * n2"],
    ),
    "a result in percent": ("4 of 5 doors.", "The share is 4 / 5 = 80%.", "80", ["answer = n0 / n1 * n2"]),
    "dollars asked for in cents": (
        "10 cans cost $5. How many cents is one?",
        "One costs 5/10 = $<<5/10=0.5>>0.5.",
        "50",
        ["t0 = n0 / n1", "answer = t0 * n2"],
    ),
    "another unit": (
        "20 gallons fill 80 jugs. How many pints each?",
        "20 gallons = 160 pints\nThat is 160/80 = <<160/80=2>>2 pints.",
        "2",
        ["t0 = n0 * n1", "answer = t0 / n2"],
    ),
    "rounding up": (
        "120 ounces in cans of 16. How many cans?",
        "120/16 = <<120/16=7.5>>7.5 cans.\nNobody sells half a can, so she needs 8.",
        "8",
        ["t0 = n0 / n1", "answer = math.ceil(t0)"],
    ),
    "rounding to the nearest": (
        "9 of 27 frogs. What percent, to the nearest integer?",
        "9 frogs / 27 frogs * 100% = 33.333...%, which rounds down to 33%.",
        "33",
        ["t0 = n0 / n1 * n2", "answer = round(t0)"],
    ),
    "a restated choice": (
        "One route is 1500 miles at 75 mph, the other 750 at 25. How long does the faster take?",
        "The first takes 1500/75 = <<1500/75=20>>20 hours.\nThe second takes 750/25 = <<750/25=30>>30.\n"
        "The faster takes 20 hours because 20 < 30.",
        "20",
        ["answer = n0 / n1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READINGS)
def test_reading(name: str) -> None:
    question, solution, answer, expected = READINGS[name]
    computed = [step for step in steps(question, solution, answer) if step[0] in "ta"]
    assert computed == expected


EQUATIONS = {
    "like terms": ("x + 4x = 80\n5x = 80\nx = <<16=16>>16", "16", ["t0 = n0 + n1", "answer = n2 / t0"]),
    "constants on both sides": (
        "They meet when 20(x + 15) = 40x\nThen 300 = 20x and x = 15.",
        "15",
        ["t0 = n0 * n1", "t1 = n2 - n0", "answer = t0 / t1"],
    ),
    "a letter below": (
        "y/(18+y) = 1/4\nso y = 6",
        "6",
        ["t0 = n0 / n1 * n2", "t1 = n0 - n0 / n1", "answer = t0 / t1"],
    ),
    "a negative constant": ("Z - 12 - 19 = 16\nZ = 47", "47", ["answer = n0 + n1 + n2"]),
    "percents": ("X + X*80% = $36\nThus X = $36/1.8 = $20", "20", ["t0 = n0 + n1 / n2", "answer = n3 / t0"]),
    "what follows": (
        "x + 2*x = 30 games\nx = <<10=10>>10\nShe won 2x = 20 games.",
        "20",
        ["t0 = n0 + n1", "t1 = n2 / t0", "answer = n1 * t1"],
    ),
    "two letters": (
        "We know b = 5s - 4 and s + b = 116.\ns + 5s - 4 = 116\ns = 20\nBack in b = 5s - 4, we get b = 96",
        "96",
        ["t0 = n0 + n1", "t1 = n2 + n3", "t2 = t0 / t1", "answer = n3 * t2 - n1"],
    ),
    "expanded brackets": (
        "Oaks: 3+2x\nElms: 7(3+2x)=21+14x\nAll: x+3+2x+21+14x=92\nx=<<4=4>>4\nElms: 21+14(4)=77",
        "77",
        ["t0 = n0 * n1", "t1 = n0 * n2", "t2 = n3 - n2 - t1", "t3 = n4 + n1 + t0", "t4 = t2 / t3",
         "answer = t1 + t0 * t4"],
    ),
    "an expression worth the answer": (
        "Let D be the dessert.\nThe entree costs D+5.\nD+(D+5)=23\nD=<<9=9>>9\nIt costs $<<14=14>>14.",
        "14",
        ["t0 = n0 - n1", "t1 = n2 + n2", "t2 = t0 / t1", "answer = t2 + n1"],
    ),
    "x that means times": (
        "He pays 12 x 3 = 36.\nThat is 36 x 2 = 72.",
        "72",
        ["t0 = n0 * n1", "answer = t0 * n2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUATIONS)
def test_equation_in_a_letter(name: str) -> None:
    solution, answer, expected = EQUATIONS[name]
    question = "1 2 3 4 5 7 12 15 16 18 19 20 23 30 36 40 80 80% 92 116"
    computed = [step for step in steps(question, solution, answer) if step[0] in "ta"]
    assert computed == expected


NOT_COMPUTED = {
    "a count of steps": (
        "Halve 400 until 100 are left.",
        "400/2=<<400/2=200>>200.\n200/2=<<200/2=100>>100 in the 2nd step.",
        "2",
    ),
    "another label": ("4 and 4 and 6.", "All in all 4+4+6 = <<4+4+6=14>>14 dogs.", "18"),
    "an equation that does not hold": ("192 minutes at 100.", "It cost 192*100=$1920.", "1920"),
    "a number that nobody computes": ("30 and 49 right.", "He gets 79 right in total.", "79"),
    "a constant": ("50 in all.", "It is <<50=50>>50.", "50"),
    "the same number by chance": (
        "Every 2 days one becomes two. When are there 16?",
        "1*2=<<1*2=2>>2.\n2*2=<<2*2=4>>4.\n4*2=<<4*2=8>>8.\n8*2=<<8*2=16>>16 after 8 days.",
        "8",
    ),
    "rounding without a word for it": (
        "A piece of 2.2 loses a fifth.",
        "It keeps 2.2 - .44 = <<2.2-.44=1.76>>1.76.\nIt is thrown away in 2 days.",
        "2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_COMPUTED)
def test_no_program_without_a_computation_that_gives_the_answer(name: str) -> None:
    conversion = convert_gsm8k([], [row(*NOT_COMPUTED[name])])
    assert conversion.splits["test"][0].reference is None
    assert [(reject.split, reject.row) for reject in conversion.rejects] == [("test", 0)]
    assert conversion.rejects[0].reason
    assert conversion.rejects[0].detail


def test_a_number_of_the_question_is_told_from_an_equal_step() -> None:
    question = "He rides 20 miles there and back on 5 days, and 200 on Sunday, at 25 mph. How long?"
    solution = "20*2=<<20*2=40>>40\n40*5=<<40*5=200>>200\n200+200=<<200+200=400>>400\n400/25=<<400/25=16>>16"
    assert "t2 = t1 + n3" in steps(question, solution, "16")


def test_a_factor_of_the_question_is_told_from_a_step_that_is_added_later() -> None:
    question = "Mom has 1 eye, dad 3, each of 3 kids has 4. How many eyes?"
    solution = (
        "Mom and dad have 1+3=<<1+3=4>>4.\nThe kids have 3*4=<<3*4=12>>12.\nAll have 4+12=<<4+12=16>>16."
    )
    assert steps(question, solution, "16")[-3:] == ["t0 = n0 + n1", "t1 = n1 * n2", "answer = t0 + t1"]


def test_equal_steps_are_each_used() -> None:
    solution = "Red: 6*3=<<6*3=18>>18\nBlue: 9*2=<<9*2=18>>18\nBoth: 18+18=<<18+18=36>>36"
    assert steps("6 red at 3, 9 blue at 2.", solution, "36")[-1] == "answer = t0 + t1"


def test_steps_the_answer_does_not_need_are_left_out() -> None:
    solution = "Left: 75-10=<<75-10=65>>65\nDone: 10+20=<<10+20=30>>30\nSo 75-30=<<75-30=45>>45"
    assert steps("75 tasks, 10 done, then 20.", solution, "45")[-2:] == ["t0 = n0 + n1", "answer = n2 - t0"]


def test_the_reading_with_fewest_unexplained_constants_wins() -> None:
    solution = "So in 102 - 72 = <<31-1=30>>30 homes."
    assert steps("Of 102 homes 72 are full.", solution, "30") == ["n0 = 102", "n1 = 72", "answer = n0 - n1"]


@pytest.mark.parametrize(
    ("question", "constant", "origin"),
    [
        ("It takes 17 days.", "17", "question"),
        ("It takes seventeen days.", "17", "question"),
        ("It takes one hundred and five days.", "105", "question"),
        ("It takes 2,500 days.", "2500", "question"),
        ("A third stay.", "3", "question"),
        ("Two-fifths stay.", "0.4", "question"),
        ("2 and a half dozen.", "2.5", "question"),
        ("Sales rose by 15%.", "1.15", "question"),
        ("It costs 45 cents.", "0.45", "question"),
        ("3 million people.", "3000000", "question"),
        ("How many hours?", "60", "conversion"),
        ("How many ounces?", "16", "conversion"),
        ("How many cards?", "17", "unexplained"),
    ],
)
def test_constants_are_explained(question: str, constant: str, origin: str) -> None:
    problem = convert(question, f"It is {constant}*1000003=<<{constant}*1000003=0>>0", "0")
    assert problem.reference is None
    solution = f"It is {constant}*0=<<{constant}*0=0>>0"
    assert convert(question, solution, "0").meta["rules"][0] == origin


def test_first_four_fifths_of_train_are_train_and_the_rest_dev() -> None:
    good = row("2 and 3?", "2+3=<<2+3=5>>5", "5")
    bad = row("Who?", "Nobody knows.", "5")
    conversion = convert_gsm8k([good, bad, good, good, bad], [bad])
    ids = {split: [problem.id for problem in problems] for split, problems in conversion.splits.items()}
    assert ids == {
        "train": ["gsm8k-train-0", "gsm8k-train-2", "gsm8k-train-3"],
        "dev": ["gsm8k-train-4"],
        "test": ["gsm8k-test-0"],
    }
    assert [(reject.split, reject.row) for reject in conversion.rejects] == [
        ("train", 1),
        ("dev", 4),
        ("test", 0),
    ]
    assert conversion.splits["dev"][0].meta == {"split_row": 0, "no_reference": "no computation is written"}
    assert conversion.rejects_by_reason("train") == {"no computation is written": 1}


def test_answers_are_numbers_and_questions_stay_as_they_are() -> None:
    question = "One line\u2028another line: 2,000 and 8,000?"
    problem = convert(question, "2000+8000=<<2000+8000=10000>>10,000", "10,000")
    assert (problem.question, problem.answer, type(problem.answer)) == (question, 10000, int)
    assert convert("1 of 2?", "1/2=<<1/2=.5>>.5", "0.5").answer == 0.5
    assert convert("Who?", "Ann did it.", "Ann").answer == "Ann"


def test_progress_counts_rows() -> None:
    seen: list[tuple[int, int]] = []
    good = row("2 and 3?", "2+3=<<2+3=5>>5", "5")
    convert_gsm8k([good] * 700, [good], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(500, 701), (701, 701)]


PAPER = {
    "only the first annotation of a line": (
        "a", "9*2=<<9*2=18>>18 and 18-3=<<18-3=15>>15", "18", ["n0 = 9", "n1 = 2", "answer = n0 * n1"]
    ),
    "a constant counts": ("a", "It is <<50=50>>50.", "50", ["n0 = 50", "answer = n0"]),
    "the latest equal result is meant": (
        "a",
        "<<2*3=6>>\n<<12/2=6>>\n<<6+6=12>>",
        "12",
        ["n0 = 2", "n1 = 3", "n2 = 12", "t0 = n0 * n1", "t1 = n2 / n0", "answer = t1 + t1"],
    ),
    "decimals stay where the question has them": (
        "5.0 or 7", "<<5+7=12>>", "12", ["n0 = 5.0", "n1 = 7", "answer = n0 + n1"]
    ),
    "annotations hold to the last bit or not at all": ("a", "<<70*.01*90=63>>", "63", []),
    "signs are lost": ("a", "<<-20+30=10>>", "10", []),
    "text is not read": ("a", "2+3=5", "5", []),
}  # fmt: skip


@pytest.mark.parametrize("name", PAPER)
def test_paper_style(name: str) -> None:
    question, solution, answer, expected = PAPER[name]
    assert steps(question, solution, answer, style="paper") == expected


SCRAPS = st.sampled_from(
    [
        *"0123456789+-*/()=.,%$x<>:#^ \n",
        "<<",
        ">>",
        "=<<2*3=6>>6",
        " dollars ",
        " of ",
        " is equal to ",
        "√",
        MARK,
    ]
)
LONG = [
    "9" * 5000,
    "(" * 500 + "1" + ")" * 500 + "=1",
    "1" + "+1" * 500 + "=501",
    "9999**64=1",
    "1/0=0",
    "<<=>>",
]


@examples(150)
@given(st.lists(SCRAPS, max_size=60).map("".join) | st.text(max_size=60), st.integers(-50, 50))
def test_any_text_is_converted_or_refused(text: str, answer: int) -> None:
    check_any_text(text, str(answer))


@pytest.mark.parametrize("text", [*LONG, *(f"<<{text}>>" for text in LONG)])
@pytest.mark.parametrize("answer", ["501", "9" * 5000, "1e999999999", "nan", "1/0"])
def test_hostile_text_is_converted_or_refused(text: str, answer: str) -> None:
    check_any_text(text, answer)


def check_any_text(text: str, answer: str) -> None:
    for style in ("partway", "paper"):
        conversion = convert_gsm8k([], [row(text, text, answer)], style=style)
        (problem,) = conversion.splits["test"]
        assert (problem.reference is None) == bool(conversion.rejects)
        if problem.reference is not None:
            assert is_correct(trace(problem.reference).answer, problem.answer)


@pytest.fixture(scope="module")
def raw(real_data: Path) -> Mapping[str, list[Mapping[str, object]]]:
    return read_raw(GSM8K, real_data / "gsm8k")


@pytest.fixture(scope="module")
def real(raw: Mapping[str, list[Mapping[str, object]]]) -> Conversion:
    return convert_gsm8k(raw["train"], raw["test"], processes=2)


def referenced(conversion: Conversion, *splits: str) -> list[Problem]:
    return [
        problem for split in splits for problem in conversion.splits[split] if problem.reference is not None
    ]


@pytest.mark.volume
def test_two_processes_convert_real_rows_as_one_always_has(real: Conversion) -> None:
    problems = [
        [split, p.id, p.question, p.answer, p.reference and p.reference.text, dict(p.meta)]
        for split, converted in real.splits.items()
        for p in converted
    ]
    rejects = [[reject.split, reject.row, reject.reason, reject.detail] for reject in real.rejects]
    text = json.dumps([problems, rejects, real.notes])
    assert hashlib.sha256(text.encode()).hexdigest() == REAL_DIGEST


@pytest.mark.volume
def test_real_rows_get_programs(real: Conversion) -> None:
    assert len(referenced(real, "train", "dev")) >= 7377
    assert len(referenced(real, "test")) >= 1299
    assert {split: len(problems) for split, problems in real.splits.items() if split != "train"} == {
        "dev": 1495,
        "test": 1319,
    }
    assert len(referenced(real, "train")) == len(real.splits["train"])
    without = sum(reject.split == "train" for reject in real.rejects)
    assert len(real.splits["train"]) + without == 5978


@pytest.mark.volume
def test_real_programs_compute_their_answers(real: Conversion) -> None:
    problems = referenced(real, "train", "dev", "test")
    traces = trace_all([problem.reference for problem in problems])
    for problem, traced in zip(problems, traces, strict=True):
        assert traced.failure is None, problem.id
        assert is_correct(traced.answer, problem.answer), problem.id
        steps = problem.reference.steps
        assert any(operator in step for step in steps for operator in OPERATORS) or "= -n" in steps[-1], (
            problem.id
        )
        assert len(problem.meta["rules"]) == len(problem.meta["sources"]) == len(steps), problem.id


@pytest.mark.volume
def test_real_programs_have_few_unexplained_constants(real: Conversion) -> None:
    assert sum("unexplained" in problem.meta["rules"] for problem in real.splits["train"]) <= 216


@pytest.mark.volume
def test_real_tricky_rows(real: Conversion) -> None:
    problems = {problem.id: problem for split in real.splits.values() for problem in split}
    for number in (2525, 623, 4045, 4983, 2250, 6638, 7390):
        assert problems[f"gsm8k-train-{number}"].reference is not None, number
    without = {reject.row for reject in real.rejects if reject.split != "test"}
    assert {7139, 6760} <= without


@pytest.mark.volume
def test_paper_style_keeps_what_the_authors_kept(raw: Mapping[str, list[Mapping[str, object]]]) -> None:
    conversion = convert_gsm8k(raw["train"], raw["test"], style="paper")
    kept = {split: len(referenced(conversion, split)) for split in conversion.splits}
    assert kept == {"train": 5576, "dev": 1393, "test": 1198}
