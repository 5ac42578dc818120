"""Whatever is drawn, solution paths lead to the answer, and rewriting an expression keeps its value."""

from math import isclose
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from partway import Solution, is_correct, trace
from partway.datasets.storyproblems import generate_problems, generate_splits, solution_paths
from partway.datasets.storyproblems.expressions import (
    Expression,
    Name,
    Number,
    add,
    evaluate,
    multiply,
    parse,
    substitute,
)
from partway.datasets.storyproblems.rewriting import variants
from partway.datasets.storyproblems.steps import spell

VALUES = {"a": 3, "b": 7, "c": 12.5, "p": 20}

leaves = st.one_of(st.sampled_from(sorted(VALUES)).map(Name), st.sampled_from([1, 2, 4, 100]).map(Number))


def _combined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    few = st.lists(inner, max_size=2).map(tuple)
    few_leaves = st.lists(leaves, max_size=2).map(tuple)
    return st.one_of(st.builds(add, some, few), st.builds(multiply, some, few_leaves))


expressions = st.recursive(leaves, _combined, max_leaves=8)
levels = st.sampled_from(["easy", "medium", "hard", "mixed"])
seeds = st.integers(0, 2**32)


@settings(max_examples=60, deadline=None)
@given(seeds, levels)
def test_every_path_executes_to_the_answer_and_is_canonical(seed, level):
    for problem in generate_problems(3, seed=seed, difficulty=level):
        for path in solution_paths(problem, Random(seed), 8):
            result = trace(path)
            assert result.failure is None
            assert is_correct(result.answer, problem.answer)
            assert Solution.parse(path.text) == path


@settings(max_examples=10, deadline=None)
@given(seeds, levels)
def test_splits_are_reproducible_and_disjoint(seed, level):
    first, again = (generate_splits(12, 6, 6, seed=seed, difficulty=level).splits for _ in range(2))
    assert first == again
    questions = [problem.question for split in first.values() for problem in split]
    assert len(set(questions)) == len(questions)


@given(expressions)
def test_rewriting_keeps_the_value(expression):
    value = evaluate(expression, VALUES)
    for other in variants(expression):
        assert isclose(evaluate(other, VALUES), value, rel_tol=1e-9, abs_tol=1e-9)


@given(expressions)
def test_a_spelled_formula_means_the_same(expression):
    assert isclose(
        evaluate(parse(spell(expression)), VALUES), evaluate(expression, VALUES), rel_tol=1e-9, abs_tol=1e-9
    )


@given(expressions, expressions)
def test_substituting_a_quantity_keeps_the_value(outer, inner):
    known = VALUES | {"a": evaluate(inner, VALUES)}
    written_out = substitute(outer, {"a": inner})
    assert isclose(evaluate(written_out, VALUES), evaluate(outer, known), rel_tol=1e-6, abs_tol=1e-6)
