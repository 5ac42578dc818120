"""The column layouts people have, each read into the same few fields.

| columns | whose |
| --- | --- |
| `question`, `answer`, `solution` or `reference` | partway's own; either of the last two may be missing |
| `question`, `answer` with `#### 72` | GSM8K |
| `prompt`, `completion` | TRL and others; the completion is the solution, `answer` may be there |
| `prompt`, `answer` or `ground_truth` | TRL's reinforcement learning |
| `prompt`, `reward_model` | verl; the answer is `reward_model["ground_truth"]` |
| `messages`, `ground_truth` | open-instruct |

What the columns hold is checked by `examination`; here they are only found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

LAYOUTS = "question/answer, prompt/completion, prompt/reward_model or messages/ground_truth"

MOST_DIGITS = 300  # longer runs of digits stay text
_NUMBER = re.compile(
    r"(?P<sign>[-+]?)\$?(?=\.?\d)(?P<whole>\d{1,3}(?:,\d{3})+|\d*)"
    r"(?P<rest>(?:\.\d*)?(?:e[-+]?\d{1,3})?)(?:/(?P<under>\d+))?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Fields:
    """What a row says, not yet checked; None where it says nothing."""

    question: Any
    answer: Any = None
    solution: Any = None
    id: Any = None
    meta: Any = None
    others: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, str, str] = ("question", "answer", "solution")  # where the first three came from
    gsm8k: str | None = None  # an answer in GSM8K's markup, from which a solution may be made


class UnknownLayout(Exception):
    """A row whose columns are none of the layouts."""


def fields_of(row: Mapping[str, Any]) -> Fields:
    """The fields of a row, by the columns it has; a column that holds nothing (None) does not count."""
    row = {name: value for name, value in row.items() if value is not None}
    for columns, read in _READERS:
        if all(column in row for column in columns):
            return read(row)
    found = ", ".join(map(str, row)) or "nothing"
    raise UnknownLayout(f"found the columns {found}; expected {LAYOUTS}")


def plain_answer(text: str) -> int | float | str:
    """The number that `text` writes, in the spellings data sets use; other text stays text.

    >>> [plain_answer(text) for text in ("72", "1,234", "$5", "3/4", "-0.50", "6/3", "5 apples", "1,23")]
    [72, 1234, 5, 0.75, -0.5, 2, '5 apples', '1,23']
    """
    text = text.strip()
    match = _NUMBER.fullmatch(re.sub(r"\s*([-+$/])\s*", r"\1", text))
    if match is None or len(text) > MOST_DIGITS or (match["under"] and int(match["under"]) == 0):
        return text
    literal = match["sign"] + match["whole"].replace(",", "") + match["rest"]
    number = float(literal) if match["rest"] else int(literal)
    if match["under"]:
        number = number / int(match["under"])
        return int(number) if number.is_integer() else number
    return number


def chat_text(value: Any, role: str) -> Any:
    """Text as it is, or what `role` said last in a list of messages."""
    if not isinstance(value, list | tuple):
        return value
    said = [turn.get("content") for turn in value if isinstance(turn, Mapping) and turn.get("role") == role]
    return said[-1] if said else None


def _read_question(row: Mapping[str, Any]) -> Fields:
    answer: Any = row.get("answer")
    markup = answer if isinstance(answer, str) and "####" in answer else None
    if markup is not None:
        answer = plain_answer(markup.rpartition("####")[2])
    elif isinstance(answer, str) and row.get("answer_type") != "text":
        answer = plain_answer(answer)
    column = "solution" if "solution" in row else "reference"
    return Fields(
        question=row["question"],
        answer=answer,
        solution=row.get(column),
        columns=("question", "answer", column),
        gsm8k=markup,
        **_rest(row, "question", "answer", "answer_type", column),
    )


def _read_prompt(row: Mapping[str, Any]) -> Fields:
    question = chat_text(row["prompt"], "user")
    if isinstance(question, str):
        question = question.removeprefix("# ")  # the prompt template's own beginning, as exports have it
    column = "ground_truth" if "ground_truth" in row else "answer"
    return Fields(
        question=question,
        answer=_ground_truth(row.get(column)),
        solution=chat_text(row.get("completion"), "assistant"),
        columns=("prompt", column, "completion"),
        **_rest(row, "prompt", "completion", column),
    )


def _read_verl(row: Mapping[str, Any]) -> Fields:
    reward, extra = row["reward_model"], row.get("extra_info")
    extra = extra if isinstance(extra, Mapping) else {}
    markup = extra.get("answer")
    return Fields(
        question=extra.get("question") or chat_text(row["prompt"], "user"),  # the bare one, if it is there
        answer=_ground_truth(reward.get("ground_truth")) if isinstance(reward, Mapping) else None,
        columns=("prompt", "reward_model.ground_truth", "solution"),
        gsm8k=markup if isinstance(markup, str) and "####" in markup else None,
        **_rest(row, "prompt", "reward_model"),
    )


def _read_open_instruct(row: Mapping[str, Any]) -> Fields:
    return Fields(
        question=chat_text(row["messages"], "user"),
        answer=_ground_truth(row["ground_truth"]),
        columns=("messages", "ground_truth", "solution"),
        **_rest(row, "messages", "ground_truth"),
    )


def _ground_truth(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    return plain_answer(value) if isinstance(value, str) else value


def _rest(row: Mapping[str, Any], *used: str) -> dict[str, Any]:
    others = {name: value for name, value in row.items() if name not in {*used, "id", "meta"}}
    return {"id": row.get("id"), "meta": row.get("meta"), "others": others}


_READERS: tuple[tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Fields]], ...] = (
    (("prompt", "reward_model"), _read_verl),
    (("messages", "ground_truth"), _read_open_instruct),
    (("question",), _read_question),
    (("prompt",), _read_prompt),
)
