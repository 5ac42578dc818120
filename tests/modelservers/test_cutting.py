"""Where the solution ends in what a model on a server wrote."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelservers.http_engine import cut_completion
from partway.language import PYTHON, PythonLanguage
from straightline import parse


@pytest.mark.parametrize(
    ("written", "finished", "expected"),
    [
        ("n0 = 1\nanswer = n0\nprint(answer)\n", True, ("n0 = 1\nanswer = n0\n", True)),
        ("n0 = 1\nanswer = n0\nprint(ans", False, ("n0 = 1\nanswer = n0\n", True)),
        ("n0 = 1\nanswer = n0", True, ("n0 = 1\nanswer = n0\n", True)),
        ("n0 = 1\nanswer = n0", False, ("n0 = 1\nanswer = n0", False)),
        ("answer = max(\n1,\n2)\nx = 1\n", False, ("answer = max(\n1,\n2)\n", True)),
        ("\n\nn0 = 1\n\nn1 = 2\n", False, ("n0 = 1\n", True)),
        ("n0 = 1\n# Next question?\nanswer = 5\n", False, ("n0 = 1\n", True)),
        ("# first the oil\nanswer = 5\n", False, ("# first the oil\nanswer = 5\n", True)),
        ("answers = 3\nanswer == 3\nn0 = 1\n", True, ("answers = 3\nanswer == 3\nn0 = 1\n", True)),
        ("def f(:\nanswer = 2\n", True, ("def f(:\nanswer = 2\n", True)),
        ("n0 = 1\nn1", False, ("n0 = 1\nn1", False)),
        ("", True, ("", True)),
    ],
)
def test_a_solution_ends_at_its_answer_a_blank_line_or_a_comment(written, finished, expected):
    assert cut_completion(written, finished) == expected


def test_another_answer_variable_ends_a_solution():
    assert cut_completion("answer = 1\nresult = 2\nn0 = 3", False, PythonLanguage("result")) == (
        "answer = 1\nresult = 2\n",
        True,
    )


def cut_line_by_line(text, finished):
    """The same rule, slow and obvious: the whole beginning is read again at every line."""
    lines = text.lstrip("\n").split("\n")
    for number, line in enumerate(lines):
        is_closed = finished or number < len(lines) - 1
        kept = "".join(f"{line}\n" for line in lines[:number])
        if number and is_closed and (not line.strip() or line.startswith("#")):
            return kept, True
        if is_closed and PYTHON.end(f"{kept}{line}\n") is not None:
            return f"{kept}{line}\n", True
    return "\n".join(lines), finished


SIMPLE = ["n0 = 1", "answer = n0", "answers = 2", "answer(1)", "answer: int", "x, answer = 1, 2", "answer"]
OPEN = ["answer = max(", "1,", "2)", "x = (", ")", "'''", "answer = '", "answer = 1 \\", "def f(:"]
OTHERS = ["", "  ", "# c", "if x:", "    answer = 1", "    y = 2", "answer += 1", "x = 1; answer = 3"]


@given(
    st.lists(st.sampled_from(SIMPLE + OPEN + OTHERS), min_size=1, max_size=9).map("\n".join), st.booleans()
)
def test_a_solution_is_cut_where_reading_line_by_line_would_cut_it(written, finished):
    assert cut_completion(written, finished) == cut_line_by_line(written, finished)


@given(st.lists(st.sampled_from(SIMPLE + OPEN + OTHERS), min_size=1, max_size=9).map("\n".join))
def test_no_step_is_cut_in_two_and_the_last_one_assigns_the_answer(written):
    end, whole = PYTHON.end(written), parse(written, "answer")
    if end is not None and whole.error is None:
        cut = parse(written[:end], "answer")
        assert cut.error is None
        assert cut.steps == whole.steps
        assert cut.statements[-1].assigns("answer")


@pytest.mark.parametrize(
    "written",
    ["answer(1)\n" * 8_000, "x = (\n" + "answer = 1\n" * 8_000, "x" * 20_000_000, "answer = 1\n" * 200_000],
    ids=["calls", "an open bracket", "one line", "longer than is ever parsed"],
)
def test_long_completions_cost_no_more_than_a_few_times_parsing_them(written):
    began = time.process_time()
    cut_completion(written, True)
    assert time.process_time() - began < 1.5  # it took minutes when every line parsed all lines before it
