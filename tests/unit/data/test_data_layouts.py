"""Rows in the layouts of public data sets, written for these tests, become problems."""

import json
from pathlib import Path
from typing import Any

import pytest

from partway import Problem, PythonLanguage, load_problems, trace
from partway.data.column_layouts import LAYOUTS
from partway.data.columns import parse_columns
from partway.data.problem_files import check_problems
from partway.data.remarks import without_references
from partway.errors import ConfigError, ProblemError
from partway.language.named import language_of

FENCED = "Multiply.\n\n```python\nn0 = 6\nanswer = n0 * 7\n```\nDone."


def with_tests():
    return language_of({"language": "python-tests"})


def only(row: Any, **options: Any) -> Problem:
    (problem,) = load_problems([row], **options)
    return problem


def steps(problem: Problem) -> tuple[str, ...]:
    assert problem.reference is not None
    return problem.reference.steps


def reasons(row: Any, **options: Any) -> list[str]:
    return [str(bad) for bad in check_problems([row], **options).bad_rows]


# Conversations and completions


def test_the_code_of_a_conversation_is_the_reference_and_gives_the_answer() -> None:
    turns = [
        {"role": "system", "content": "Write Python."},
        {"role": "user", "content": "Six times seven?"},
        {"role": "assistant", "content": FENCED},
    ]
    problem = only({"messages": turns, "source": "mine"})
    assert (problem.question, problem.answer) == ("Six times seven?", 42)
    assert problem.meta == {"source": "mine", "system": "Write Python."}
    assert steps(problem) == ("n0 = 6", "answer = n0 * 7")


def test_a_conversation_in_words_gives_its_answer_only() -> None:
    turns = [
        {"role": "user", "content": "Six times seven?"},
        {"role": "assistant", "content": r"That is $6\cdot7=\boxed{42}$."},
    ]
    problem = only({"messages": turns})
    assert (problem.answer, problem.reference) == (42, None)


def test_a_conversation_that_ends_with_the_question_needs_an_answer_beside_it() -> None:
    turns = [{"role": "user", "content": "Six times seven?"}]
    assert only({"messages": turns, "ground_truth": "42"}).answer == 42
    assert reasons({"messages": turns, "hint": "none"}) == [
        "rows:1: answer: missing, and there is no solution to compute it; columns not used: hint"
    ]


def test_prose_beside_a_stated_answer_is_no_reference_and_no_mistake() -> None:
    turns = [{"role": "user", "content": "Six times seven?"}, {"role": "assistant", "content": "Forty-two."}]
    problem = only({"messages": turns, "answer": "42"})
    assert (problem.answer, problem.reference) == (42, None)
    assert reasons({"messages": turns})[0].startswith("rows:1: messages: step 1 fails: SyntaxError")


@pytest.mark.parametrize("fence", ["```python\n", "```py\n", "```\n", "``` python\n"])
def test_completions_are_taken_out_of_their_fence(fence: str) -> None:
    completion = f"First a sketch:\n{fence}n0 = 1\n```\nthen:\n{fence}n0 = 6\nanswer = n0 * 7\n```\n"
    assert steps(only({"prompt": "Six times seven?", "completion": completion})) == (
        "n0 = 6",
        "answer = n0 * 7",
    )


def test_code_of_another_language_is_not_taken_for_python() -> None:
    completion = "```python\nanswer = 42\n```\nwhich prints\n```text\n42\n```\n"
    assert steps(only({"prompt": "Six times seven?", "completion": completion})) == ("answer = 42",)


def test_a_program_with_marks_in_its_comments_is_still_a_program() -> None:
    problem = only({"question": "Six times seven?", "solution": "#### work\nn0 = 6\nanswer = n0 * 7"})
    assert steps(problem) == ("n0 = 6", "answer = n0 * 7")


# MATH


def test_math_has_the_answer_in_its_last_box_and_keeps_the_words() -> None:
    solution = r"We get \boxed{1} of three, then \boxed{\frac{3}{4}} in all."
    row = {"problem": "How much of the cake?", "solution": solution, "level": "Level 2", "type": "Algebra"}
    problem = only(row)
    assert (problem.question, problem.answer, problem.reference) == ("How much of the cake?", 0.75, None)
    assert problem.meta == {"solution": solution, "level": "Level 2", "type": "Algebra"}


def test_a_stated_answer_goes_before_the_box() -> None:
    assert only({"problem": "?", "solution": r"\boxed{x}", "answer": "12"}).answer == 12


def test_a_problem_whose_solution_is_a_program_has_a_reference() -> None:
    assert steps(only({"problem": "Half of 8?", "solution": "answer = 8 / 2"})) == ("answer = 8 / 2",)


# Tests as answers

MBPP = {
    "task_id": 7,
    "text": "Write a function to add up the digits of a number.",
    "code": "def digit_sum(n):\r\n    return sum(int(d) for d in str(n))",
    "test_list": ["assert digit_sum(123) == 6", "assert digit_sum(0) == 0"],
    "test_setup_code": "",
    "challenge_test_list": [],
}
HUMAN_EVAL = {
    "task_id": "Own/0",
    "prompt": 'def twice(n: int) -> int:\n    """Twice n.\n    >>> twice(2)\n    4\n    """\n',
    "canonical_solution": "    return n * 2\n",
    "test": "METADATA = {}\n\ndef check(candidate):\n    assert candidate(3) == 6\n",
    "entry_point": "twice",
}


def test_mbpp_rows_are_asked_with_their_tests_and_judged_by_them() -> None:
    problem = only(MBPP, language=with_tests())
    assert problem.id == "7"
    assert problem.question.splitlines() == [
        MBPP["text"],
        "Your code should pass these tests:",
        *MBPP["test_list"],
    ]
    assert problem.answer == MBPP["test_list"]
    assert steps(problem)[0].startswith("def digit_sum(n):")
    assert problem.meta == {"challenge_test_list": []}


def test_a_helper_that_tests_call_is_theirs_and_not_a_solutions() -> None:
    helper = "def shifted(s):\n    return s[1:] + s[:1]"
    row = {
        "task_id": "HumanEval/50",
        "prompt": f'import math\n\n{helper}\n\ndef restored(s):\n    """Undo shifted."""\n',
        "canonical_solution": "    return s[-1:] + s[:-1]\n",
        "test": "def check(candidate):\n    assert candidate(shifted('abc')) == 'abc'",
        "entry_point": "restored",
    }
    language = with_tests()
    problem = only(row, language=language)
    assert problem.answer == [f"import math\n{helper}", row["test"], "check(restored)"]
    both_do_nothing = "def shifted(s):\n    return s\n\ndef restored(s):\n    return s"
    assert not language.is_correct(problem, trace(both_do_nothing, language, problem))


def test_sanitized_mbpp_brings_the_imports_of_its_tests() -> None:
    row = {"prompt": "Halve a number.", "code": "def half(n):\n    return n / 2", "task_id": 2}
    row |= {"test_imports": ["import math"], "test_list": ["assert math.isclose(half(3), 1.5)"]}
    assert only(row, language=with_tests()).answer == ["import math", "assert math.isclose(half(3), 1.5)"]


def test_a_reference_that_fails_its_tests_is_reported() -> None:
    wrong = {**MBPP, "code": "def digit_sum(n):\n    return n"}
    assert reasons(wrong, language=with_tests()) == ["rows:1: code: never passes its tests"]
    wrong = {**HUMAN_EVAL, "canonical_solution": "    return n + 2\n"}
    assert reasons(wrong, language=with_tests()) == ["rows:1: canonical_solution: never passes its tests"]


def test_human_eval_rows_are_a_beginning_a_whole_function_and_a_check() -> None:
    problem = only(HUMAN_EVAL, language=with_tests())
    assert (problem.id, problem.question) == ("Own/0", HUMAN_EVAL["prompt"])
    assert problem.answer == [HUMAN_EVAL["test"], "check(twice)"]
    assert problem.reference.text.startswith(HUMAN_EVAL["prompt"].split("\n")[0])
    assert problem.reference.text.endswith("return n * 2")


def test_tests_without_their_checker_say_which_setting_runs_them() -> None:
    (reason, *_) = reasons(MBPP)
    assert reason.startswith("rows:1: test_list: a list of tests, which only `language: python-tests` runs")


# Equations and functions


def test_svamp_equations_become_programs() -> None:
    row = {"ID": "own-1", "Body": "Ana had 8 plums. ", "Question": "She ate 3. How many are left?"}
    row |= {"Equation": "( 8.0 - 3.0 )", "Answer": 5.0, "Type": "Subtraction"}
    problem = only(row)
    assert (problem.id, problem.answer) == ("own-1", 5)
    assert problem.question == "Ana had 8 plums. She ate 3. How many are left?"
    assert steps(problem) == ("n0 = 8", "n1 = 3", "answer = n0 - n1")
    assert problem.meta == {"Equation": "( 8.0 - 3.0 )", "Type": "Subtraction"}


ASDIV_XML = """<?xml version="1.0" encoding="UTF-8"?>
<Machine-Reading-Corpus-File><ProblemSet>
<Problem ID="own-1" Grade="1" Source="own"><Body>A shelf has 4 red and 5 blue books.</Body>
<Question>How many books are there?</Question><Solution-Type>Addition</Solution-Type>
<Answer>9 (books)</Answer><Formula>4+5=9</Formula></Problem>
<Problem ID="own-2" Grade="2" Source="own"><Body>Two trains leave.</Body>
<Question>When do they meet?</Question><Solution-Type>TVQ</Solution-Type>
<Answer>10:30</Answer><Formula>x=y; y=3</Formula></Problem>
</ProblemSet></Machine-Reading-Corpus-File>
"""


def test_asdiv_is_read_from_its_xml(tmp_path: Path) -> None:
    (tmp_path / "asdiv.xml").write_text(ASDIV_XML, encoding="utf-8")
    books, trains = load_problems(tmp_path / "asdiv.xml")
    assert (books.id, books.answer, steps(books)) == ("own-1", 9, ("n0 = 4", "n1 = 5", "answer = n0 + n1"))
    assert (trains.answer, trains.reference) == ("10:30", None)


def test_asdiv_is_read_from_the_columns_of_the_hub() -> None:
    row = {"body": "4 red and 5 blue books.", "question": "How many?", "solution_type": "Addition"}
    assert steps(only({**row, "answer": "9 (books)", "formula": "4+5=9"}))[-1] == "answer = n0 + n1"


@pytest.mark.parametrize("equation", ["4+5=8", "4+", "x+5=9", "import os", "4=5=9", None, 9])
def test_equations_that_do_not_give_the_answer_make_no_reference(equation: Any) -> None:
    row = {"Body": "4 red and 5 blue.", "Question": "How many?", "Answer": 10, "Equation": equation}
    problem = only(row)
    assert (problem.answer, problem.reference) == (10, None)


def test_broken_xml_is_an_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "broken.xml").write_text("<a>\n<Problem></a>", encoding="utf-8")
    with pytest.raises(ProblemError, match=r"broken.xml:2: not XML"):
        load_problems(tmp_path / "broken.xml")


def test_gsm_hard_functions_become_steps() -> None:
    body = ('"""How much?"""', "eggs = 7654321", "eaten = 4", "result = eggs - eaten", "return result")
    code = "def solution():\n    " + "\n    ".join(body)
    row = {"input": "Of 7654321 eggs 4 are eaten. How many are left?", "code": code, "target": 7654317.0}
    problem = only(row)
    assert problem.answer == 7654317
    assert steps(problem) == ("eggs = 7654321", "eaten = 4", "result = eggs - eaten", "answer = result")
    assert only({**row, "target": 1.0}).reference is None
    assert steps(only(row, language=PythonLanguage("result")))[-1] == "result = eggs - eaten"
    assert only(row, language=PythonLanguage("total")).reference is None, "what is made assigns `answer`"


def test_every_layout_is_found_by_its_columns() -> None:
    """No entry of the table hides a later one: a row of just its columns is read by it."""
    for layout in LAYOUTS:
        row = dict.fromkeys(layout.columns, "")
        first = next(other for other in LAYOUTS if all(column in row for column in other.columns))
        assert first is layout


# Columns by other names


def test_columns_can_be_named() -> None:
    row = {
        "instruction": "Six times seven?",
        "gold": {"value": "42"},
        "output": FENCED,
        "question": "no",
        "n": 1,
    }
    problem = only(row, columns=parse_columns("question=instruction, answer=gold.value,solution=output"))
    assert (problem.question, problem.answer) == ("Six times seven?", 42)
    assert steps(problem) == ("n0 = 6", "answer = n0 * 7")
    assert problem.meta["n"] == 1


def test_a_dot_looks_into_an_object() -> None:
    row = {"task": "Six times seven?", "gold": {"value": "42"}}
    assert only(row, columns={"question": "task", "answer": "gold.value"}).answer == 42


def test_a_named_column_that_is_not_there_is_reported_with_what_is() -> None:
    assert reasons({"prompt": "?", "target": 1}, columns={"question": "promt", "answer": "target"}) == [
        "rows:1: columns: there is no 'promt' among prompt, target; did you mean 'prompt'?"
    ]
    assert reasons({"prompt": "?", "target": 1}, columns={"question": "prompt", "answer": "goal"}) == [
        "rows:1: answer: missing, and there is no solution to compute it; columns not used: target"
    ]


@pytest.mark.parametrize("text", ["question", "questions=prompt", "question=", "a=b", ""])
def test_pairs_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(
        ConfigError, match="expected NAME=COLUMN with NAME one of question, answer, solution, context, id"
    ):
        parse_columns(text)


def test_problems_without_any_reference_are_told_with_the_columns_not_used() -> None:
    rows = [{"question": f"{n}?", "answer": n, "output": "answer = 1", "source": "s"} for n in range(3)]
    remark = without_references(load_problems(rows))
    assert remark is not None
    assert remark.startswith("of 3 problems NONE has a reference")
    assert remark.endswith("--columns solution=COLUMN (columns not used: output, source)")
    assert without_references(load_problems([*rows, {"question": "?", "solution": "answer = 1"}])) is None


# Tables


def test_tsv_is_read_with_tabs(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text('question\tanswer\n"Six, times\tseven?"\t42\n', encoding="utf-8")
    (problem,) = load_problems(tmp_path / "rows.tsv")
    assert (problem.question, problem.answer) == ("Six, times\tseven?", 42)


def test_pandas_tables_are_read_with_their_missing_values_and_arrays() -> None:
    pandas = pytest.importorskip("pandas")
    numpy = pytest.importorskip("numpy")
    turns = numpy.array([{"role": "user", "content": "Six times seven?"}], dtype=object)
    table = pandas.DataFrame(
        {
            "messages": [turns, turns],
            "ground_truth": [42, 43],
            "level": [1.0, float("nan")],
            "note": [pandas.NA, "b"],
        },
        index=[5, 5],
    )
    first, second = load_problems(table)
    assert (first.question, first.answer, first.meta) == ("Six times seven?", 42, {"level": 1.0})
    assert (second.answer, second.meta) == (43, {"note": "b"})


def test_hugging_face_tables_and_streams_are_read() -> None:
    datasets = pytest.importorskip("datasets")
    rows = [
        {"problem": "Half of 8?", "solution": "answer = 8 / 2"},
        {"problem": "?", "solution": "answer = 1"},
    ]
    table = datasets.Dataset.from_list(rows)
    expected = load_problems(rows)
    assert load_problems(table) == expected
    assert load_problems(table.to_iterable_dataset()) == expected
    with pytest.raises(ProblemError, match="found a mapping with train; pass one of its splits"):
        load_problems(datasets.DatasetDict({"train": table}))


# The Hub


class FakeHub:
    """Stands for the Hub: remembers what was asked."""

    def __init__(self, configs: list[str]) -> None:
        self.configs = configs
        self.asked: list[Any] = []

    def get_dataset_config_names(self, name: str) -> list[str]:
        return self.configs

    def load_dataset(self, name: str, config: str | None, split: str) -> list[dict[str, Any]]:
        self.asked.append((name, config, split))
        return [{"question": "Six times seven?", "answer": "6*7 = <<6*7=42>>42\n#### 42"}]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    datasets = pytest.importorskip("datasets")
    fake = FakeHub(["main", "socratic"])
    for name in ("get_dataset_config_names", "load_dataset"):
        monkeypatch.setattr(datasets, name, getattr(fake, name))
    return fake


def test_a_name_on_the_hub_is_read_with_its_usual_configuration(hub: FakeHub) -> None:
    assert load_problems("openai/gsm8k")[0].answer == 42
    load_problems("openai/gsm8k:test")
    load_problems("openai/gsm8k:socratic:test")
    hub.configs = ["only"]
    load_problems("somebody/rows")
    assert hub.asked == [
        ("openai/gsm8k", "main", "train"),
        ("openai/gsm8k", "main", "test"),
        ("openai/gsm8k", "socratic", "test"),
        ("somebody/rows", "only", "train"),
    ]


def test_several_configurations_without_a_usual_one_are_named(hub: FakeHub) -> None:
    hub.configs = ["algebra", "geometry"]
    with pytest.raises(
        ProblemError, match="has algebra, geometry; name one of them: some/math:algebra:train"
    ):
        load_problems("some/math")


def test_offline_a_name_is_refused_in_one_line_and_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr("partway.data.hub.is_hub_known", lambda: False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("waits before it tries again"))
    with pytest.raises(
        ProblemError, match="nobody/nothing: no such file, and as a data set of the Hugging Face Hub"
    ) as caught:
        load_problems("nobody/nothing")
    assert "\n" not in str(caught.value)
    assert not constants.HF_HUB_OFFLINE, "only for this call: the network may come back"


def test_a_file_that_is_missing_is_not_looked_for_on_the_hub(hub: FakeHub, tmp_path: Path) -> None:
    for name in ("data/train.jsonl", str(tmp_path / "train"), "train"):
        with pytest.raises(ProblemError, match=r"no such file$"):
            load_problems(name)
    assert hub.asked == []


def test_a_directory_with_a_name_of_the_hub_is_not_looked_for_there(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("openai/gsm8k").mkdir(parents=True)
    Path("openai/gsm8k/train.jsonl").touch()
    with pytest.raises(ProblemError, match=r"is a directory; name one of its files: train\.jsonl"):
        load_problems("openai/gsm8k")
    assert hub.asked == []


def test_a_file_with_a_name_of_the_hub_is_read_as_a_file(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("openai").mkdir()
    Path("openai/rows.json").write_text(json.dumps([{"question": "?", "answer": 1}]), encoding="utf-8")
    assert load_problems("openai/rows.json")[0].answer == 1
    assert hub.asked == []


ASKED = [{"role": "user", "content": "1 and 2?"}]


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "1 and 2?", "answer": 3},
        {"prompt": ASKED, "answer": "3", "solution": "It is three."},
        {"messages": ASKED, "answer": 3},
        {"prompt": ASKED, "reward_model": {"ground_truth": "3"}},
        {"problem": "1 and 2?", "answer": "3", "solution": "answer = 4 - 1"},
        {"input": "1 and 2?", "target": 3, "code": "def solution():\n    return 4 - 1"},
        {"question": "1 and 2?", "answer": "1 + 2 = <<1+2=3>>3\n#### 3"},
    ],
)
def test_one_column_of_a_known_layout_can_be_named(row):
    [problem] = load_problems([{**row, "mine": "answer = 1 + 2"}], columns="solution=mine")
    assert (problem.question, problem.answer) == ("1 and 2?", 3)
    assert problem.reference.text == "answer = 1 + 2"
    assert "mine" not in problem.meta
    [other] = load_problems([{**row, "mine": {"number": 7}}], columns="answer=mine.number,solution=nowhere")
    assert (other.question, other.answer, other.reference) == ("1 and 2?", 7, None)


@pytest.mark.parametrize("nothing", [None, "", "  \n"])
@pytest.mark.parametrize(
    ("question", "solution"), [("question", "solution"), ("prompt", "completion"), ("prompt", "solution")]
)
def test_an_empty_solution_is_none_in_every_layout(nothing, question, solution):
    [problem] = load_problems([{question: "1 and 2?", "answer": 3, solution: nothing}])
    assert (problem.answer, problem.reference) == (3, None)


def test_a_system_turn_is_kept_beside_the_problem():
    turns = [{"role": "system", "content": "Be brief."}, *ASKED]
    for row in ({"prompt": turns, "answer": 3}, {"messages": turns, "answer": 3}):
        [problem] = load_problems([row])
        assert (problem.question, problem.meta) == ("1 and 2?", {"system": "Be brief."})


def test_a_function_that_returns_is_told_its_language():
    pytest.importorskip("partway.written")
    row = {"question": "1 and 2?", "answer": 3, "solution": "def solution():\n    return 1 + 2"}
    assert reasons(row) == [
        "rows:1: solution: never assigns 'answer'; it returns: --language python-written?"
    ]
    assert load_problems([row], language=language_of({"language": "python-written"}))
