"""Trace credit: what a text earns, and the signatures other trainers call."""

import pytest

from partway import Problem, SolutionBuffer, trace
from partway.errors import SandboxError
from partway.language import PythonLanguage
from partway.rewards import code_in, compute_score, trace_credits, trace_reward

REFERENCE = "n0 = 2\nn1 = 10\nn2 = 5\nt0 = n0 * n1\nanswer = t0 + n2"
SPOKES = Problem("spokes", "?", 25, REFERENCE)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("answer = 25", 1.0),
        ("a = 10\nb = 5\nc = 2\nd = a * c\nanswer = d - b", 0.5 * 4 / 5),
        ("a = 10\nb = 5\nc = 2\nd = a / c\nanswer = d - b", 0.5 * 3 / 5),
        ("b = 5\na = 10\nanswer = 0", 0.0),
        ("a = 10\nb = 2\nc = a / 0", 0.5 * 2 / 5),
        ("no program", 0.0),
        ("", 0.0),
        ("I think:\n```python\na = 10\nb = 2\nanswer = a\n```\nanswer = 25", 0.5 * 2 / 5),
    ],
)
def test_a_beginning_earns_the_share_of_the_solution_it_stands_for(text, score):
    assert trace_credits([text], [SPOKES]) == [pytest.approx(score)]


def test_without_a_reference_only_the_answer_counts():
    assert trace_credits(["answer = 25", REFERENCE.replace("+", "-")], [SPOKES] * 2, [None, None]) == [
        1.0,
        0.0,
    ]


def test_every_solution_of_a_buffer_is_known():
    buffer = SolutionBuffer.seeded(Problem("oil", "?", 25, REFERENCE))
    buffer.consider(trace("a = 5\nb = a * 4\nanswer = a + b"))
    wrong = "x = 5\ny = 20\nanswer = y"
    assert trace_credits([wrong], [SPOKES]) == [0.0]
    assert trace_credits([wrong], [SPOKES], [buffer]) == [pytest.approx(0.5 * 2 / 3)]
    assert trace_credits([wrong], [SPOKES], [buffer], alpha=0.9) == [pytest.approx(0.9 * 2 / 3)]


def test_trl_calls_it_with_columns_texts_and_chats():
    columns = {"prompts": ["?"] * 2, "completion_ids": [[1], [2]], "trainer_state": object()}
    chats = [
        [{"role": "assistant", "content": "answer = 25"}],
        [{"role": "assistant", "content": "answer = 1"}],
    ]
    for completions in (["answer = 25", "answer = 1"], chats):
        assert trace_reward(
            completions=completions, answer=[25] * 2, solution=[REFERENCE] * 2, **columns
        ) == [1, 0]
        assert trace_reward(completions=completions, answer=[25] * 2, **columns) == [1, 0]


def test_verl_calls_it_by_position():
    assert compute_score("oil", "a = 2\nanswer = a", 25, {"solution": REFERENCE}) == pytest.approx(0.5 / 5)
    assert compute_score("oil", "answer = 25", 25) == 1.0


def test_where_the_sandbox_cannot_judge_there_is_no_score(monkeypatch):
    def refuse(self, texts):
        raise SandboxError("no room")

    monkeypatch.setattr(PythonLanguage, "trace_all", refuse)
    assert trace_reward(["answer = 25"], [25]) == [None]
    with pytest.raises(SandboxError):
        compute_score("oil", "answer = 25", 25)


def test_code_stands_in_a_block_or_alone():
    assert code_in("answer = 1") == "answer = 1"
    assert code_in("```\nn0 = 1\nanswer = n0\n```") == "n0 = 1\nanswer = n0"
    assert code_in("```python\nn0 = 1\nanswer = n") == "n0 = 1\nanswer = n"
