"""MathQA: programs by the published rules, the published selection, and the filtered split."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mathdata.mathqa import convert_mathqa, filter_mathqa
from mathdata.mathqa.filtered import align, read_split_index
from mathdata.mathqa.formulas import OPERATIONS, NoFormula, numbers_in, program_of
from mathdata.mathqa.selection import LOST_DIGITS, declared_answer
from mathdata.mathqa.templates import distinct_templates, overlaps, template_of, within_edits
from partway import is_correct, trace
from partway.data.conversion import Conversion
from partway.data.sources import read_rows
from partway.errors import ProblemError


def row(problem: str, formula: str, options: str, correct: str = "a", **more: Any) -> dict[str, Any]:
    fields = {"Problem": problem, "linear_formula": formula, "options": options, "correct": correct}
    return {**fields, "category": "general", **more}


def result(formula: str, *numbers: float) -> Any:
    return trace(program_of(formula, list(numbers))).answer


# Programs


def test_a_row_becomes_the_published_text_and_code() -> None:
    options = "a ) 4 , b ) 78 , c ) 9 , d ) 1 , e ) none"
    formula = "multiply(n1,const_100)|add(#0,const_0_25)|divide(#1,n0)"
    conversion = convert_mathqa({"train": [row("take 4 of 3.1", formula, options, "b")]})
    problem = conversion.splits["train"][0]
    assert problem.id == "mathqa/train/0"
    assert problem.question == "take 4 of 3.1 n0 = 4.0 n1 = 3.1"
    assert problem.reference is not None
    assert problem.reference.text == "n0 = 4.0\nn1 = 3.1\nt0 = n1 * 100.0\nt1 = t0 + 0.25\nanswer = t1 / n0"
    assert problem.answer == 310.25 / 4
    assert problem.meta == {"category": "general", "linear_formula": formula}


def test_numbers_are_found_as_published() -> None:
    assert numbers_in("- 4,000 and -5 , .5 , 3 . 7e2 x1 1,23") == [4000, -5, 0.5, 3, 700, 1, 1, 23]


def test_constants_are_read_as_published() -> None:
    assert result("multiply(n0,const_0_2778)", 2.0) == 2 * 0.2778
    assert result("multiply(n0,const_2.0)", 2.0) == 4
    assert result("multiply(n0,const_pi)", 2.0) == 2 * math.pi
    assert result("multiply(n0,const_deg_to_rad)", 2.0) == 2 * (math.pi / 180)


@pytest.mark.parametrize(
    ("call", "numbers", "expected"),
    [
        ("power(n0,n1)", (2.0, 9.0), 32.0),
        ("sqrt(n0)", (-4.0,), 0.0),
        ("log(n0)", (8.0,), 3.0),
        ("factorial(n0)", (20.0,), math.factorial(15)),
        ("gcd(n0,n1)", (12.9, 18.0), 6),
        ("lcm(n0,n1)", (4.0, 6.0), 12),
        ("choose(n0,n1)", (5.0, 2.0), 10),
        ("permutation(n0,n1)", (2.0, 5.0), 20.0),
        ("count_interval(n0,n1)", (9.0, 3.0), 7.0),
        ("percent(n0,n1)", (20.0, 50.0), 10.0),
        ("price_after_loss(n0,n1)", (20.0, 50.0), 40.0),
        ("original_price_before_gain(n0,n1)", (25.0, 50.0), 40.0),
        ("union_prob(n0,n1,n2)", (0.5, 0.25, 0.125), 0.625),
        ("combined_work(n0,n1)", (2.0, 0.5), 1.0),
        ("find_work(n0,n1)", (4.0, 2.0), 4.0),
        ("speed_ratio_steel_to_stream(n0,n1)", (5.0, 3.0), 4.0),
        ("triangle_area_three_edges(n0,n1,n2)", (3.0, 4.0, 5.0), 6.0),
        ("quadrilateral_area(n0,n1,n2)", (2.0, 3.0, 4.0), 7.0),
        ("circle_sector_area(n0,n1)", (2.0, 90.0), math.pi),
        ("surface_rectangular_prism(n0,n1,n2)", (1.0, 2.0, 3.0), 22.0),
        ("volume_cone(n0,n1)", (3.0, 2.0), 6 * math.pi),
        ("cube_edge_by_volume(n0)", (27.0,), 3.0),
        ("negate(n0)", (2.0,), -2.0),
    ],
)
def test_operations_compute_what_their_names_say(
    call: str, numbers: tuple[float, ...], expected: float
) -> None:
    assert result(call, *numbers) == pytest.approx(expected)


def test_every_operation_runs_without_scipy() -> None:
    for name in OPERATIONS:
        traced = trace(program_of(f"{name}(n0,n1,n2)", [5.0, 4.0, 3.0]))
        assert traced.failure is None, name
        assert "scipy" not in traced.solution.text


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("stream_speed(n0,n1)", "operation not listed"),
        ("add(n0,n2)", "formula not readable"),
        ("add(n0,#0)", "formula not readable"),
        ("add(n0)", "formula not readable"),
        ("add(n0,x)", "formula not readable"),
        ("", "operation not listed"),
    ],
)
def test_formulas_outside_the_rules_have_no_program(formula: str, reason: str) -> None:
    with pytest.raises(NoFormula) as caught:
        program_of(formula, [1.0, 2.0])
    assert caught.value.reason == reason


# Declared answers


@pytest.mark.parametrize(
    ("options", "letter", "value"),
    [
        ("a ) 24 , b ) 1,200.5 , c ) 3", "b", 1200.5),
        ("a ) rs . 24 , b ) 31 / 36 , c ) 49", "b", 31 / 36),
        ("a ) $ 3 / 4 , b ) 2", "a", 3),  # as published: only right behind the bracket
        ("a ) 2.5 / 5 , b ) 2", "a", 2.5),
        ("a ) none , b ) 7", "a", 7),
    ],
)
def test_declared_answers_are_read_as_published(options: str, letter: str, value: float) -> None:
    declared = declared_answer(options, letter)
    assert declared is not None
    assert declared.low == declared.high == value


def test_options_without_the_letter_or_a_number_declare_nothing() -> None:
    assert declared_answer("a ) 1 , b ) 2", "c") is None
    assert declared_answer("a ) 1 , b ) none", "b") is None
    assert declared_answer("a ) 1 / 0 , b ) none", "a") is None


@pytest.mark.parametrize(
    ("options", "letter", "low", "high"),
    [
        ("a ) 14, b ) 16, c ) 9", "b", 16000, 16999),
        ("a ) 14, b ) 16, c ) 9", "c", 9000, 9999),
        ("a ) 14, b ) 16 , c ) 9", "b", 16, 16),
        ("a ) 3 / 16, b ) 7 / 48, c ) 1 / 9", "b", 7 / 48999, 7 / 48000),
    ],
)
def test_cut_options_declare_a_range_of_thousands(options: str, letter: str, low: float, high: float) -> None:
    declared = declared_answer(options, letter, is_cut=True)
    assert declared is not None
    assert (declared.low, declared.high) == (low, high)


# The selection


def test_rows_are_left_out_for_the_published_reasons() -> None:
    options = "a ) 6 , b ) 0 , c ) none"
    rows = [
        row("2 and 3", "multiply(n0,n1)|", options),
        row("2 and 3", "add(n0,n1)|", options),
        row("2 and 3", "multiply(n0,n1)|", options, "b"),
        row("2 and 3", "multiply(n0,n1)|", "a ) all , b ) none"),
        row("2 and 3", "subtract(n0,n0)|", options),
        row("2 and 0", "divide(n0,n1)|", options),
        row("2 and 3", "tangent(n0)|", options),
        row("2 and 3", "multiply(n0,n1)|", "a ) 6, b ) 7", options_cut=True),
        row("two and three", "multiply(const_2,const_3)|", options),
        row("2 and .5.3", "multiply(n0,n0)|", options),
    ]
    conversion = convert_mathqa({"dev": rows})
    assert [problem.id for problem in conversion.splits["dev"]] == ["mathqa/dev/0", "mathqa/dev/8"]
    assert [(reject.row, reject.reason) for reject in conversion.rejects] == [
        (1, "result is not the declared answer"),
        (2, "declared answer is 0"),
        (3, "no declared answer"),
        (4, "result is 0 or no number"),
        (5, "program fails"),
        (6, "operation not listed"),
        (7, LOST_DIGITS),
        (9, "number not readable"),
    ]
    assert conversion.rejects[0].record is rows[1]


def test_results_within_one_percent_are_kept() -> None:
    rows = [row("5 and 2", "divide(n0,n1)", f"a ) {declared}") for declared in ("2.52", "2.6")]
    assert len(convert_mathqa({"dev": rows}).splits["dev"]) == 1


def test_a_file_of_something_else_is_an_error() -> None:
    with pytest.raises(ProblemError, match="MathQA dev, row 0: no text in 'Problem'"):
        convert_mathqa({"dev": [{"question": "?"}]})


@pytest.fixture(scope="module")
def converted(real_data: Path) -> Conversion:
    names = {"train": "train_reconstructed.jsonl", "dev": "dev.json", "test": "test.json"}
    return convert_mathqa({split: read_rows(real_data / "mathqa" / name) for split, name in names.items()})


@pytest.mark.volume
def test_the_published_numbers_of_problems_are_reached(converted: Conversion) -> None:
    assert {split: len(problems) for split, problems in converted.splits.items()} == {
        "train": 19_217,  # 19,209 published; the digits that decide the other rows are lost
        "dev": 2_822,
        "test": 1_883,
    }
    assert len(converted.rejects) == 29_837 + 4_475 + 2_985 - 19_217 - 2_822 - 1_883


@pytest.mark.volume
def test_every_program_executes_to_its_answer(converted: Conversion) -> None:
    problems = [problem for split in converted.splits.values() for problem in split]
    for problem in random.Random(0).sample(problems, 2000):
        assert problem.reference is not None
        assert is_correct(trace(problem.reference).answer, problem.answer)
        assert "scipy" not in problem.reference.text
        assert not problem.question.startswith("#")
    assert len({problem.id for problem in problems}) == len(problems)


@pytest.mark.volume
def test_the_index_gives_the_papers_filtered_split(converted: Conversion, real_data: Path) -> None:
    index = read_split_index(real_data / "mathqa" / "filtered_split.json")
    filtered = filter_mathqa(converted, index)
    assert {split: len(problems) for split, problems in filtered.splits.items()} == {
        "train": 6_786,
        "dev": 754,
        "test": 1_883,
    }
    firsts = {
        split: [problem.question for problem in filtered.splits[split][:3]] for split in ("train", "dev")
    }
    beginnings = {  # as the authors published them beside the index
        "train": [
            "the average of 11 numbers is 60 .",
            "find the compound interest on $ 1200",
            "if a dozen of oranges",
        ],
        "dev": [
            "if x and y are integers , what is",
            "tom opened a shop investing rs . 30000",
            "there is a point p on",
        ],
    }
    for split, expected in beginnings.items():
        assert all(map(str.startswith, firsts[split], expected))
    overlap = filtered.notes["template_overlap"]
    assert isinstance(overlap, dict)
    assert overlap["train"]["test"] + overlap["dev"]["test"] == 962
    assert overlap["train"]["dev"] == 0
    assert filtered.notes["index_rows_missing"] == 0
    used = {problem.id for problems in filtered.splits.values() for problem in problems}
    assert not any(f"mathqa/{reject.split}/{reject.row}" in used for reject in filtered.rejects)
    agreeing = filtered.notes["index_rows_kept_by_rule"]
    assert isinstance(agreeing, int)
    assert agreeing >= 7_520


@pytest.mark.volume
def test_the_rule_comes_close_to_the_papers_filtered_split(converted: Conversion) -> None:
    filtered = filter_mathqa(converted)
    assert {split: len(problems) for split, problems in filtered.splits.items()} == {
        "train": 6_804,
        "dev": 755,
        "test": 1_883,
    }
    assert filtered.notes["kept_by_rule"] == 7_559


# The split index


def test_an_index_of_something_else_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "index.json"
    for content, complaint in [
        ("[1]", "not a split index"),
        ("{", "not a split index"),
        ('{"train": [1]}', "expected a list of row numbers as 'dev'"),
        ('{"train": [1], "dev": ["2"]}', "expected a list of row numbers as 'dev'"),
        ('{"train": [1], "dev": [99999]}', "outside MathQA-Python"),
    ]:
        path.write_text(content)
        with pytest.raises(ProblemError, match=complaint):
            read_split_index(path)


def test_the_authors_own_keys_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "index.json"
    path.write_text(json.dumps({"train_idx": [3, 1], "dev_idx": [2], "train_first_examples": []}))
    assert read_split_index(path) == {"train": [3, 1], "dev": [2]}


def test_rows_are_aligned_over_missing_and_additional_ones() -> None:
    rng = random.Random(1)
    published = [rng.random() < 0.4 for _ in range(1000)]
    rows: list[int | None] = [number for number in range(1000) if number not in {200, 201, 600}]
    for place in (100, 400, 800):
        rows.insert(place, None)
    ours = [rng.random() < 0.4 if number is None else published[number] for number in rows]
    is_doubtful = [number is None for number in rows]
    aligned = align(ours, published, is_doubtful)
    wrong = sum(rows[row] != number for number, row in aligned.items())
    assert len(aligned) == 997
    assert wrong <= 10  # beside a gap, equal neighbours can stand for each other
    assert all(ours[row] == published[number] for number, row in aligned.items())


# Templates


def edit_distance(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """The textbook recursion, row by row."""
    above = list(range(len(second) + 1))
    for line, token in enumerate(first, 1):
        row = [line]
        for column, other in enumerate(second, 1):
            row.append(min(above[column] + 1, row[-1] + 1, above[column - 1] + (token != other)))
        above = row
    return above[-1]


short_templates = st.lists(st.sampled_from("abc"), max_size=7).map(tuple)


@given(short_templates, short_templates, st.integers(0, 3))
def test_within_edits_agrees_with_the_textbook(
    first: tuple[str, ...], second: tuple[str, ...], edits: int
) -> None:
    assert within_edits(first, second, edits) == (edit_distance(first, second) <= edits)


@given(st.lists(short_templates, max_size=12), st.integers(0, 2))
def test_distinct_templates_are_those_of_the_plain_walk(templates: list[tuple[str, ...]], edits: int) -> None:
    kept: list[int] = []
    for place, template in enumerate(templates):
        if all(edit_distance(template, templates[other]) > edits for other in kept):
            kept.append(place)
    assert distinct_templates(templates, edits) == kept


def test_overlap_counts_questions_with_a_template_of_the_other_split() -> None:
    splits = {"train": ["1 car", "2 car", "3 bus"], "test": ["9.5 car", "no number"]}
    assert template_of("9.5 car") == template_of("1,000 car")
    assert overlaps(splits) == {"train": {"test": 2}, "test": {"train": 1}}
