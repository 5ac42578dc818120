"""What a run begins with: which problems are counted token by token, and that garbage waits meanwhile."""

import gc
from types import SimpleNamespace

import pytest

from partway import PYTHON, Problem
from partway.models.loading import load_model
from partway.training.preparation import traced_references, usable

REFERENCE = "n0 = 4\nanswer = n0 * 2"


@pytest.fixture(scope="module")
def tiny():
    return load_model("tiny-storyproblems")


def lengths_counted(language_model, question, context_length):
    """Whether one problem is kept, and whether its tokens were counted."""
    counted = []

    def prompt(text):
        assert not gc.isenabled(), "so many objects are made that looking through them takes long"
        counted.append(text)
        return language_model.codec.prompt(text)

    codec = SimpleNamespace(
        question=language_model.codec.question,
        anchor=(),
        closing=language_model.codec.closing,
        steps=language_model.codec.steps,
        prompt=prompt,
    )
    problems = [Problem("p", question, 8, REFERENCE), Problem("short", "?", 8, REFERENCE)]
    given = SimpleNamespace(codec=codec, context_length=context_length)
    kept, left_out = usable(problems, PYTHON, given, traced_references(problems, PYTHON))
    assert len(kept) + len(left_out) == 2
    return problems[0] in kept, question in counted


def test_tokens_are_counted_only_where_a_problem_might_not_fit(tiny):
    assert lengths_counted(tiny, "4 boxes of 2?", 512) == (True, False)
    assert lengths_counted(tiny, "4 boxes of 2? " * 20, 512) == (True, True), "too long to be sure"
    assert lengths_counted(tiny, "4 boxes of 2?" + "x" * 3000, 512) == (False, True)
    assert lengths_counted(tiny, "4 boîtes de 2?", 512) == (True, True), "who knows how that is spelled"
