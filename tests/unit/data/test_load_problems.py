"""Problems from files and rows: layouts, formats, and everything that can be wrong with them."""

import csv
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partway import Problem, PythonLanguage, load_problems
from partway.data.problem_files import check_problems
from partway.data.spellings import plain_answer
from partway.errors import ProblemError
from partway.problems import write_problems

SOLUTION = "n0 = 10\nanswer = n0 * 2"
GOOD = {"id": "oil", "question": "10 ml for each of 2 wheels?", "answer": 20, "solution": SOLUTION}


def written(tmp_path: Path, content: str | bytes, name: str = "problems.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def complaints(source: Any) -> list[tuple[int, str, str]]:
    return [(row.line, row.field, row.reason) for row in check_problems(source).bad_rows]


# Writing and reading back


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    problems = [
        Problem(
            "a", "separators \u2028 and \u0085 stay\nin one row", 20, SOLUTION, {"steps": [1, {"é": None}]}
        ),
        Problem("b", "no reference", 2.5),
        Problem("c", "text that looks like a number", "72"),
        Problem("d", "truth", True, "answer = 1 < 2"),
        Problem("e", "a list", [1, 2.5, "x"]),
        Problem("f", "huge", 10**40),
    ]
    write_problems(tmp_path / "problems.jsonl", problems)
    loaded = load_problems(tmp_path / "problems.jsonl")
    assert loaded == problems
    assert [type(problem.answer) for problem in loaded] == [type(problem.answer) for problem in problems]
    assert [problem.meta for problem in loaded] == [problem.meta for problem in problems]


plain_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text.strip() != ""
)


@given(
    st.lists(
        st.builds(
            Problem,
            id=plain_text,
            question=plain_text,
            answer=plain_text.map(str.strip)
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False),
            meta=st.dictionaries(plain_text, st.none() | st.integers() | plain_text),
        ),
        min_size=1,
        unique_by=lambda problem: problem.id,
    )
)
def test_any_problems_survive_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, problems: list[Problem]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    write_problems(path, problems)
    loaded = load_problems(path)
    assert loaded == problems
    assert [problem.meta for problem in loaded] == [problem.meta for problem in problems]


def test_a_problem_that_is_not_json_is_refused_and_no_file_is_left(tmp_path: Path) -> None:
    for answer in (math.nan, object(), "\ud800"):
        with pytest.raises(ProblemError, match="problem 'odd' cannot be written"):
            write_problems(
                tmp_path / "problems.jsonl", [Problem("fine", "?", 1), Problem("odd", "?", answer)]
            )
    assert list(tmp_path.iterdir()) == []


# Layouts


def test_question_and_answer_are_enough() -> None:
    problem = load_problems([{"question": "1 + 1?", "answer": 2}])[0]
    assert (problem.question, problem.answer, problem.reference) == ("1 + 1?", 2, None)


def test_a_reference_column_is_a_solution_column() -> None:
    assert load_problems([{"question": "?", "answer": 20, "reference": SOLUTION}])[0].reference is not None


def test_a_missing_answer_is_what_the_reference_computes() -> None:
    assert load_problems([{"question": "?", "solution": SOLUTION}])[0].answer == 20
    assert load_problems([{"question": "?", "answer": None, "solution": SOLUTION}])[0].answer == 20


def test_a_completion_is_a_solution_and_gives_the_answer() -> None:
    plain, chat = load_problems(
        [
            {"prompt": "# how much?\n", "completion": SOLUTION},
            {
                "prompt": [
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": "how much?"},
                ],
                "completion": [{"role": "assistant", "content": SOLUTION}],
                "answer": "20",
            },
        ]
    )
    assert plain.question == "how much?\n"
    assert (chat.question, chat.answer, chat.reference) == ("how much?", 20, plain.reference)


def test_verl_columns_are_read_and_the_rest_is_kept() -> None:
    row = {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": "how much?"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "1,234"},
        "extra_info": {"split": "train", "index": 7},
    }
    problem = load_problems([row])[0]
    assert (problem.question, problem.answer, problem.reference) == ("how much?", 1234, None)
    assert problem.meta == {"data_source": "openai/gsm8k", "ability": "math", "extra_info": row["extra_info"]}
    assert load_problems([{**row, "prompt": "how much?"}])[0].question == "how much?"


def test_open_instruct_columns_are_read() -> None:
    turns = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "said"},
        {"role": "user", "content": "last"},
    ]
    for ground_truth in ("3/4", ["3/4"]):
        problem = load_problems([{"messages": turns, "ground_truth": ground_truth, "dataset": "gsm8k"}])[0]
        assert (problem.question, problem.answer, problem.meta) == ("last", 0.75, {"dataset": "gsm8k"})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("72", 72),
        (" 1,234,567 ", 1234567),
        ("$5", 5),
        ("- $ 5.50", -5.5),
        ("3/4", 0.75),
        ("-6/3", -2),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("007", 7),
        ("+3", 3),
        ("75%", 75),
        (r"12.5\%", 12.5),
        ("1,000", 1000),
        (r"\$5", 5),
        (r"$\$1{,}250$", 1250),
        (r"\frac{3}{4}", 0.75),
        (r"-\dfrac{6}{3}", -2),
        (r"\tfrac12", 0.5),
        (r"2\frac{1}{4}", 2.25),
        (r"\boxed{7}", 7),
        (r"$\boxed{\frac{1}{8}}$", 0.125),
        (r"\(42\)", 42),
        (r"10,\!000", 10000),
    ],
)
def test_answers_that_write_a_number_are_numbers(text: str, number: float) -> None:
    answer = plain_answer(text)
    assert answer == number
    assert not isinstance(answer, str)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nan",
        "inf",
        "1_000",
        "1,23",
        "12 apples",
        "1/0",
        ".",
        "-",
        "$",
        "½",
        "٣",
        "5%%",
        r"\frac{1}{0}",
        r"\sqrt{2}",
        r"\boxed{",
        "$$",
        "1 2",
        "e5",
        "9" * 301,
    ],
)
def test_answers_that_write_something_else_stay_text(text: str) -> None:
    assert plain_answer(text) == text


# Ids


def test_ids_are_kept_as_text() -> None:
    rows = [{**GOOD, "id": 7}, {**GOOD, "id": "seven"}]
    assert [problem.id for problem in load_problems(rows)] == ["7", "seven"]


def test_made_ids_depend_on_the_content_only() -> None:
    rows = [
        {"question": "a?", "answer": 1},
        {"question": "b?", "answer": 1},
        {"question": "a?", "answer": 1.5},
    ]
    ids = [problem.id for problem in load_problems(rows)]
    assert len(set(ids)) == 3
    assert [problem.id for problem in load_problems(rows[::-1])] == ids[::-1]
    assert ids[0] == "bb0ad87cfc659608"  # the same on every machine and in every version


def test_equal_rows_without_ids_are_numbered() -> None:
    first, second, third = (problem.id for problem in load_problems([{"question": "a?", "answer": 1}] * 3))
    assert (second, third) == (f"{first}-2", f"{first}-3")


def test_a_duplicated_id_is_reported_with_the_line_it_repeats(tmp_path: Path) -> None:
    path = written(tmp_path, lines(GOOD, {**GOOD, "id": "other"}, GOOD))
    assert complaints(path) == [(3, "id", "'oil' is already the id of line 1")]


# Files


def test_json_lists_and_data_objects_are_read_and_their_items_numbered(tmp_path: Path) -> None:
    rows = [GOOD, {"question": "", "answer": 1}, 5]
    for content in (rows, {"version": {"data": [1]}, "data": rows, "more": []}):
        path = written(tmp_path, json.dumps(content, indent=1), "problems.json")
        assert complaints(path) == [
            (2, "question", "the question is empty"),
            (3, "row", "expected an object with named fields, found a number"),
        ]
    assert str(check_problems(path).bad_rows[0]) == f"{path}:2: question: the question is empty"


def test_json_lines_in_a_json_file_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, lines(GOOD, {**GOOD, "id": "b"}), "problems.json")
    assert len(load_problems(path)) == 2


def test_a_json_file_of_something_else_is_an_error(tmp_path: Path) -> None:
    for content in ('{"rows": []}', "5", '"text"'):
        with pytest.raises(ProblemError, match="expected a list of objects"):
            load_problems(written(tmp_path, content, "problems.json"))


def test_csv_is_read_with_numbers_quotes_and_line_breaks(tmp_path: Path) -> None:
    text = (
        'id,question,answer,solution,meta\na,"Two, ""wheels""\n10 ml each?",20,"n0 = 10\nanswer = n0 * 2",\n'
    )
    text += 'b,half?,1/2,,"{""level"": 3}"\nc,,1,,\n'
    path = written(tmp_path, text, "problems.csv")
    checked = check_problems(path)
    first, second = checked.problems
    assert (first.question, first.answer, len(first.reference or ())) == ('Two, "wheels"\n10 ml each?', 20, 2)
    assert (second.answer, second.meta) == (0.5, {"level": 3})
    assert complaints(path) == [(6, "columns", complaints(path)[0][2])]


def test_csv_rows_of_the_wrong_width_are_reported(tmp_path: Path) -> None:
    path = written(tmp_path, "question,answer\na?,1\nb?\nc?,1,2\n", "problems.csv")
    assert complaints(path) == [
        (3, "row", "1 cells, but the header has 2"),
        (4, "row", "3 cells, but the header has 2"),
    ]


def test_parquet_is_read_with_nested_columns(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        {"prompt": [{"role": "user", "content": "how much?"}], "reward_model": {"ground_truth": "7"}},
        {"prompt": [{"role": "user", "content": ""}], "reward_model": {"ground_truth": None}},
    ]
    path = tmp_path / "problems.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert [problem.answer for problem in check_problems(path).problems] == [7]
    assert complaints(path) == [
        (2, "prompt", "the question is empty"),
        (2, "reward_model.ground_truth", "missing, and there is no solution to compute it"),
    ]


def test_a_broken_parquet_file_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ProblemError, match="not a readable Parquet file"):
        load_problems(written(tmp_path, "no parquet", "problems.parquet"))


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ProblemError, match=r"pip install 'partway\[datasets\]'"):
        load_problems(written(tmp_path, "PAR1", "problems.parquet"))


def test_hugging_face_datasets_are_read() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list([GOOD, {"id": "b", "question": "half?", "answer": 10}])
    assert [problem.id for problem in load_problems(dataset)] == ["oil", "b"]
    with pytest.raises(ProblemError, match="pass one of its splits"):
        load_problems(datasets.DatasetDict({"train": dataset}))


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    for name in ("problems.jsonl", "problems.csv", "problems.json"):
        content = {
            "problems.jsonl": lines(GOOD),
            "problems.csv": "question,answer\nhow much?,20\n",
            "problems.json": json.dumps([GOOD], indent=1),
        }[name]
        path = written(tmp_path, b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode(), name)
        assert [problem.answer for problem in load_problems(path)] == [20]


def test_line_separators_do_not_split_rows_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    row = json.dumps({**GOOD, "question": "a\u2028b\u2029c\u0085d"}, ensure_ascii=False)
    path = written(tmp_path, f"\n{row}\n  \r\n\n{{}}\n")
    checked = check_problems(path)
    assert checked.problems[0].question == "a\u2028b\u2029c\u0085d"
    assert [bad.line for bad in checked.bad_rows] == [5]


@pytest.mark.parametrize("name", ["problems.jsonl", "problems.json", "problems.csv"])
@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_an_error(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(ProblemError, match="empty"):
        load_problems(written(tmp_path, content, name))


def test_missing_files_directories_and_other_suffixes_say_what_to_try(tmp_path: Path) -> None:
    written(tmp_path, lines(GOOD))
    with pytest.raises(ProblemError, match=r"is a directory; name one of its files: problems\.jsonl"):
        load_problems(tmp_path)
    with pytest.raises(ProblemError, match=r"no such file$"):
        load_problems(tmp_path / "absent.parquet")
    with pytest.raises(ProblemError, match=r"no such file; did you mean 'problems\.jsonl'\?"):
        load_problems(tmp_path / "problem.jsonl")
    with pytest.raises(
        ProblemError, match=r"cannot read '.txt' files; try one of .jsonl, .json, .csv, .tsv, .parquet, .xml"
    ):
        load_problems(written(tmp_path, "", "problems.txt"))


# Bad rows


def test_bad_lines_are_each_reported_and_the_others_are_read(tmp_path: Path) -> None:
    good = json.dumps(GOOD).encode()
    path = written(tmp_path, b"\n".join([good, b'{"question": "\xff"}', b'{"question": ', b"[1]", b"null"]))
    assert complaints(path) == [
        (2, "row", "not UTF-8: byte 0xff at 14"),
        (3, "row", "not JSON: Expecting value at column 13"),
        (4, "row", "expected an object, found a list"),
        (5, "row", "expected an object, found null"),
    ]
    assert len(check_problems(path).problems) == 1


def test_bytes_that_are_no_utf_8_are_found_in_csv_and_json(tmp_path: Path) -> None:
    path = written(tmp_path, b"question,answer\nok?,1\nh\xe9?,1\n", "problems.csv")
    assert complaints(path) == [(3, "question", "not valid UTF-8 text")]
    with pytest.raises(ProblemError, match="not UTF-8: byte 0xe9"):
        load_problems(written(tmp_path, b'[{"question": "h\xe9?"}]', "problems.json"))


def test_truncated_json_names_the_line(tmp_path: Path) -> None:
    text = json.dumps([GOOD, GOOD], indent=1)
    with pytest.raises(ProblemError, match=r"problems.json:\d+: not JSON: .* at column \d+"):
        load_problems(written(tmp_path, text[:-20], "problems.json"))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"question": ""}, "question", "the question is empty"),
        ({"question": " \t\n"}, "question", "the question is empty"),
        ({"question": 5}, "question", "expected the text of a question, found 5"),
        ({"question": "\ud800"}, "question", "not valid UTF-8 text"),
        ({"answer": math.nan}, "answer", "nan is not a number to compare with"),
        ({"answer": -math.inf}, "answer", "-inf is not a number to compare with"),
        ({"answer": [1, math.nan]}, "answer", "nan is not a number to compare with"),
        ({"answer": Decimal("NaN")}, "answer", "nan is not a number to compare with"),
        ({"answer": ""}, "answer", "expected a number or a plain value, found ''"),
        ({"answer": b"20"}, "answer", "expected a number or a plain value, found b'20'"),
        ({"answer": None}, "answer", "missing, and there is no solution to compute it"),
        ({"id": 1.5}, "id", "expected text or a whole number, found 1.5"),
        ({"id": True}, "id", "expected text or a whole number, found True"),
        ({"id": " "}, "id", "expected text or a whole number, found ' '"),
        ({"meta": [1]}, "meta", "expected an object, found [1]"),
        ({"meta": "{"}, "meta", "expected an object, found '{'"),
        ({"meta": '{"a":' + "[" * 9_000}, "meta", 'expected an object, found \'{"a":' + "[" * 54 + "..."),
        ({"meta": {"a": ["\ud800"]}}, "meta", "not valid UTF-8 text: '\\ud800'"),
        ({"meta": {"a": nested(51)}}, "meta", "nested more than 50 deep"),
        ({"comment": "\udfff"}, "meta", "not valid UTF-8 text: '\\udfff'"),
        ({"\ud800": 1}, "meta", "not valid UTF-8 text: '\\ud800'"),
        ({"answer": ["\ud800"]}, "answer", "expected a number or a plain value, found '\\ud800'"),
        ({"answer": nested(52)}, "answer", "nested more than 50 deep"),
        (
            {"answer": None, "solution": "answer = {(1, 2): 3}"},
            "solution",
            "expected texts as the names of an object, found (1, 2)",
        ),
        ({"answer": {1: 2}}, "answer", "expected texts as the names of an object, found 1"),
        ({"solution": ["n0 = 1"]}, "solution", "expected text, found ['n0 = 1']"),
        ({"solution": "answer = 21"}, "solution", "gives 21, but the answer is 20"),
        ({"solution": "answer = '20'"}, "solution", "gives '20', but the answer is 20"),
        ({"solution": "n0 = 20"}, "solution", "never assigns 'answer'"),
        (
            {"solution": "n0 = 20\nanswer = n0 / 0"},
            "solution",
            "step 2 fails: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_each_wrong_field_is_named(change: dict[str, Any], field: str, reason: str) -> None:
    row = {"id": "x", "question": "?", "answer": 20, **change}
    assert complaints([row]) == [(1, field, reason)]


def test_a_reference_that_does_not_parse_is_reported() -> None:
    line, field, reason = complaints([{**GOOD, "solution": "n0 = (1\nanswer = 20"}])[0]
    assert (line, field) == (1, "solution")
    assert "step 1 fails: SyntaxError" in reason


def test_everything_wrong_with_a_row_is_reported() -> None:
    row = {"id": 1.5, "question": "", "answer": math.inf, "solution": "n0 = 1", "meta": 3}
    assert [field for _, field, _ in complaints([row])] == ["id", "question", "answer", "solution", "meta"]


def test_unknown_columns_are_named() -> None:
    reason = "found the columns task, result; expected question/answer"
    assert complaints([{"task": "?", "result": 1}])[0][2].startswith(reason)
    assert complaints([{"messages": [{"role": "assistant", "content": "?"}], "ground_truth": "1"}]) == [
        (1, "messages", "expected the text of a question, found nothing")
    ]


def test_loading_names_the_first_bad_row_and_how_many_more(tmp_path: Path) -> None:
    path = written(tmp_path, lines(GOOD, {"question": ""}, 5))
    with pytest.raises(ProblemError) as caught:
        load_problems(path)
    message, advice = str(caught.value).split("; ")
    assert message == f"{path}:2: question: the question is empty (and 2 more)"
    assert advice == f"see everything with: partway data check {path}"
    assert "\n" not in str(caught.value)


def test_another_answer_variable_can_be_named() -> None:
    row = {"question": "?", "answer": 3, "solution": "result = 3\nextra = 4"}
    problem = load_problems([row], language=PythonLanguage("result"))[0]
    assert problem.reference is not None
    assert problem.reference.text == "result = 3"


def test_more_rows_than_are_read_at_once_keep_their_order_and_lines(tmp_path: Path) -> None:
    rows = [{"id": str(number), "question": "?", "answer": number} for number in range(2500)]
    rows[1700]["answer"] = math.nan
    checked = check_problems(written(tmp_path, lines(*rows)))
    assert [problem.id for problem in checked.problems] == [str(n) for n in range(2500) if n != 1700]
    assert [bad.line for bad in checked.bad_rows] == [1701]


def test_an_answer_may_be_a_table_with_empty_cells() -> None:
    table = [["Ana", None], ["", 2]]
    assert load_problems([{"question": "Who has how many?", "answer": table}])[0].answer == table


@pytest.mark.parametrize("question", ["question", "prompt"])
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_rows_with_and_without_a_solution_stand_in_one_file(tmp_path, question, ending):
    solutions = ["answer = 2 + 3", "", None, "  "]
    rows = [{question: f"2 and {n}?", "answer": 2 + n, "solution": s} for n, s in enumerate(solutions, 3)]
    path = tmp_path / f"mixed.{ending}"
    with path.open("w", encoding="utf-8", newline="") as stream:
        if ending == "csv":
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        else:
            rows[-1].pop("solution")
            stream.writelines(json.dumps(row) + "\n" for row in rows)
    problems = load_problems(path)
    assert [problem.answer for problem in problems] == [5, 6, 7, 8]
    assert [problem.reference and problem.reference.text for problem in problems] == [
        "answer = 2 + 3",
        *[None] * 3,
    ]
    assert not any(problem.meta for problem in problems), "an empty column is not worth keeping"
