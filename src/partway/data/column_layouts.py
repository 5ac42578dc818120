"""The layouts of columns that data sets have: each is an entry of a table and gives the same few fields.

The first layout whose columns a row has is taken, so those with more or rarer columns come first. A layout of
your own is one more entry. What the columns hold is checked by `examination`; here they are only found.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from partway.data.columns import value_at
from partway.data.spellings import MARK, from_equation, from_function, plain_answer, read_completion

Cells = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fields:
    """What a row says, not yet checked; None where it says nothing."""

    question: Any
    answer: Any = None
    solution: Any = None
    id: Any = None
    meta: Any = None
    context: Any = None
    others: Cells = field(default_factory=dict)
    columns: tuple[str, str, str] = ("question", "answer", "solution")  # where the first three came from
    gsm8k: str | None = None  # an answer in GSM8K's markup, from which a solution may be made
    may_fail: bool = False  # the solution may not be a program: it is dropped unless it gives the answer
    has_tests: bool = False  # the answer is a list of assertions


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """Rows that have all of these columns, whose they are and how they are read."""

    name: str
    columns: Set[str]
    read: Callable[[Cells], Fields]


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong with one field of a row."""

    field: str
    reason: str


def fields_of(row: Cells, named: Mapping[str, str] = MappingProxyType({})) -> Fields | Complaint:
    """The fields of a row, by the columns it has; a column that holds nothing (None) does not count.

    Columns that were `named` take the place of those of the layout; with the question, of all of them.
    """
    row = {name: value for name, value in row.items() if value is not None}
    values = {ours: value_at(row, theirs) for ours, theirs in named.items()}
    # A column that was named keeps no second place among the others; inside an object it stays there.
    rest = {name: value for name, value in row.items() if name not in {*named, *named.values()}}
    own = {**rest, **{ours: value for ours, value in values.items() if value is not None}}
    if "question" in named:
        return _read_question(own)
    for layout in LAYOUTS:
        if layout.columns <= row.keys():
            fields = layout.read(row)
            return _overridden(fields, {**own, "question": fields.question}, named) if named else fields
    found = ", ".join(map(str, row)) or "nothing"
    return Complaint(
        "columns",
        f"found the columns {found}; expected question/answer, prompt/completion, messages or another layout "
        "of docs/first_run.md; else name yours: --columns question=...,answer=...,solution=...",
    )


def _overridden(fields: Fields, own: Cells, named: Mapping[str, str]) -> Fields:
    """The fields of a layout with those in their place that were named."""
    read, taken = _read_question(own), {*named, *named.values()}
    columns = list(zip(("question", "answer", "solution"), fields.columns, strict=True))
    # A column that was named is not also what the layout takes it for: `solution=answer`.
    chosen = {
        name: getattr(read, name) for name in (*named, *(o for o, theirs in columns if theirs in taken))
    }
    if "solution" in named:
        chosen |= {"gsm8k": read.gsm8k, "may_fail": False}
    if "answer" in named:
        chosen["has_tests"] = False
    chosen["columns"] = tuple(ours if ours in named else theirs for ours, theirs in columns)
    others = {name: value for name, value in fields.others.items() if name not in taken}
    return replace(fields, **chosen, others=others)


def chat_text(value: Any, role: str) -> Any:
    """Text as it is, or what `role` said last in a list of messages."""
    if not isinstance(value, list | tuple):
        return value
    said = [turn.get("content") for turn in value if isinstance(turn, Mapping) and turn.get("role") == role]
    return said[-1] if said else None


def _read_question(row: Cells) -> Fields:
    answer: Any = row.get("answer")
    gsm8k = answer if isinstance(answer, str) and MARK in answer else None  # a solution in words
    if gsm8k is not None:
        answer = plain_answer(gsm8k.rpartition(MARK)[2])
    elif isinstance(answer, str) and row.get("answer_type") != "text":
        answer = plain_answer(answer)
    column = "solution" if "solution" in row else "reference"
    question = chat_text(row["question"], "user")
    fields = Fields(question, answer, columns=("question", "answer", column), gsm8k=gsm8k)
    return _completed(fields, row.get(column), row, "question", "answer", "answer_type")


def _read_prompt(row: Cells) -> Fields:
    question = chat_text(row["prompt"], "user")
    if isinstance(question, str):
        question = question.removeprefix("# ")  # the prompt template's own beginning, as exports have it
    column = "ground_truth" if "ground_truth" in row else "answer"
    solution = "solution" if "solution" in row and "completion" not in row else "completion"
    fields = Fields(question, _ground_truth(row.get(column)), columns=("prompt", column, solution))
    if solution == "solution":  # as in MATH it may be one in words
        fields = replace(fields, may_fail=fields.answer is not None)
    return _completed(fields, chat_text(row.get(solution), "assistant"), row, "prompt", column)


def _read_problem(row: Cells) -> Fields:
    """MATH and what descends from it: a solution in words with a box, or a program."""
    answer = _ground_truth(row.get("answer"))
    columns = ("problem", "answer", "solution")
    fields = Fields(row["problem"], answer, columns=columns, may_fail=answer is not None)
    return _completed(fields, row.get("solution"), row, "problem", "answer")


def _read_verl(row: Cells) -> Fields:
    reward, extra = row["reward_model"], row.get("extra_info")
    extra = extra if isinstance(extra, Mapping) else {}
    fields = Fields(
        question=extra.get("question") or chat_text(row["prompt"], "user"),  # the bare one, if it is there
        answer=_ground_truth(reward.get("ground_truth")) if isinstance(reward, Mapping) else None,
        columns=("prompt", "reward_model.ground_truth", "solution"),
        gsm8k=read_completion(extra.get("answer")).gsm8k,
    )
    return _rest(fields, row, "prompt", "reward_model")


def _read_messages(row: Cells) -> Fields:
    """A conversation; where the answer is beside it (open-instruct), it may end with the question."""
    fields = Fields(
        question=chat_text(row["messages"], "user"),
        answer=_ground_truth(row.get("ground_truth", row.get("answer"))),
        columns=("messages", "ground_truth" if "ground_truth" in row else "answer", "messages"),
    )
    fields = replace(fields, may_fail=fields.answer is not None)
    # Only the last turn: what was said before the question does not answer it.
    last = row["messages"][-1:] if isinstance(row["messages"], list | tuple) else ()
    return _completed(fields, chat_text(last, "assistant"), row, "messages", "ground_truth", "answer")


def _read_mbpp(row: Cells) -> Fields:
    """The tests stand in the question, as its authors asked it: they name the function."""
    column = "text" if "text" in row else "prompt"
    setup = [*_listed(row.get("test_imports")), *_listed(row.get("test_setup_code"))]
    tests = _listed(row["test_list"])
    question = row[column]
    if isinstance(question, str):
        question = "\n".join([question.strip(), "Your code should pass these tests:", *map(str, tests)])
    fields = Fields(
        question, [*setup, *tests], row["code"], row.get("task_id"), columns=(column, "test_list", "code")
    )
    used = (column, "code", "test_list", "test_imports", "test_setup_code", "task_id")
    return _rest(replace(fields, has_tests=True), row, *used)


def _read_human_eval(row: Cells) -> Fields:
    """The beginning of a function to go on from; a solution is the whole of it."""
    fields = Fields(
        question=row["prompt"],
        answer=[*_helpers(row), row["test"], f"check({row['entry_point']})"],
        solution=f"{row['prompt']}{row['canonical_solution']}",
        id=row.get("task_id"),
        columns=("prompt", "test", "canonical_solution"),
        has_tests=True,
    )
    return _rest(fields, row, "prompt", "canonical_solution", "test", "entry_point", "task_id")


def _helpers(row: Cells) -> list[str]:
    """What the tests call beside the function under test: the prompt's own, not a solution's copy of it."""
    try:
        body = ast.parse(str(row["prompt"])).body
    except (SyntaxError, ValueError):
        return []
    functions = [
        node for node in body if isinstance(node, ast.FunctionDef) and node.name != row["entry_point"]
    ]
    called = [ast.unparse(node) for node in functions if f"{node.name}(" in str(row["test"])]
    imports = [ast.unparse(node) for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return ["\n".join([*imports, *called])] if called else []


def _read_equation(body: str, question: str, answer: str, *equations: str) -> Callable[[Cells], Fields]:
    """SVAMP and ASDiv: a story, a question about it, a number (perhaps with its unit) and an equation."""

    def read(row: Cells) -> Fields:
        # ASDiv writes its units after the number: `9 (apples)`.
        number = row[answer].partition(" (")[0] if isinstance(row[answer], str) else row[answer]
        equation = next((column for column in equations if column in row), equations[0])
        fields = Fields(
            question=_joined(str(row[body]).strip(), str(row[question]).strip()),
            answer=_ground_truth(number),
            solution=from_equation(row.get(equation)),
            id=row.get("ID"),
            columns=(question, answer, equation),
            may_fail=True,
        )
        return _rest(fields, row, body, question, answer, "ID")

    return read


def _joined(story: str, question: str) -> str:
    """A story and its question; where the story stops in the middle of a sentence, the question ends it.

    >>> _joined("A pack costs 9. If you buy 3 packs", "How much do you pay?")
    'A pack costs 9. If you buy 3 packs, how much do you pay?'
    """
    if story[-1:].isalnum():
        story, question = f"{story},", question[:1].lower() + question[1:]
    return f"{story} {question}".strip()


def _read_gsm_hard(row: Cells) -> Fields:
    fields = Fields(
        question=row["input"],
        answer=_ground_truth(row["target"]),
        solution=from_function(row["code"]),
        columns=("input", "target", "code"),
        may_fail=True,
    )
    return _rest(fields, row, "input", "target", "code")


def _completed(fields: Fields, text: Any, row: Cells, *used: str) -> Fields:
    """The fields with what the text of a solution holds; an answer that the row states stays."""
    found = read_completion(text)
    is_blank = isinstance(text, str) and not text.strip()
    if found.solution is not None or found.gsm8k is not None or is_blank:
        used = (*used, fields.columns[2])  # prose that only holds an answer is kept among the other columns
    answer = found.answer if fields.answer is None else fields.answer
    gsm8k = fields.gsm8k or found.gsm8k
    return _rest(fields, row, *used, solution=found.solution, answer=answer, gsm8k=gsm8k)


def _ground_truth(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    return plain_answer(value) if isinstance(value, str) else value


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value] if value else []


def _rest(fields: Fields, row: Cells, *used: str, **found: Any) -> Fields:
    """The fields with what was `found`, and with what the row says beside the columns that were `used`."""
    others = {name: value for name, value in row.items() if name not in {*used, "id", "meta", "context"}}
    turns = row.get("messages", row.get("prompt"))
    if isinstance(turns, list | tuple) and (system := chat_text(turns, "system")) is not None:
        others = {"system": system, **others}  # not asked: `system_prompt` says it for all problems
    row_id = row.get("id") if fields.id is None else fields.id
    found |= {"id": row_id, "meta": row.get("meta"), "context": row.get("context"), "others": others}
    return replace(fields, **found)


LAYOUTS: tuple[ColumnLayout, ...] = (
    ColumnLayout("verl", {"prompt", "reward_model"}, _read_verl),
    ColumnLayout("HumanEval", {"prompt", "canonical_solution", "test", "entry_point"}, _read_human_eval),
    ColumnLayout("MBPP", {"text", "code", "test_list"}, _read_mbpp),
    ColumnLayout("MBPP, sanitized", {"prompt", "code", "test_list"}, _read_mbpp),
    ColumnLayout("GSM-Hard", {"input", "code", "target"}, _read_gsm_hard),
    ColumnLayout(
        "SVAMP, ASDiv",
        {"Body", "Question", "Answer"},
        _read_equation("Body", "Question", "Answer", "Equation", "Formula"),
    ),
    ColumnLayout(
        "ASDiv on the Hub",
        {"body", "question", "answer"},
        _read_equation("body", "question", "answer", "formula"),
    ),
    ColumnLayout("TRL and open-instruct", {"messages"}, _read_messages),
    ColumnLayout("partway, GSM8K", {"question"}, _read_question),
    ColumnLayout("MATH", {"problem"}, _read_problem),
    ColumnLayout("TRL", {"prompt"}, _read_prompt),
)
