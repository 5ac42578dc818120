"""Whatever is drawn, solution paths lead to the answer, and rewriting an expression keeps its value."""

import ast
from math import isclose, prod
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import examples

from storyproblems import generate_problems, generate_splits, solution_paths
from storyproblems.expressions import (
    Expression,
    Name,
    Number,
    Product,
    Sum,
    add,
    evaluate,
    multiply,
    parse,
    substitute,
)
from storyproblems.rewriting import variants
from storyproblems.steps import spell

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


@examples(60)
@given(seeds, levels)
def test_every_path_executes_to_the_answer_and_is_canonical(seed, level):
    for problem in generate_problems(3, seed=seed, difficulty=level):
        for path in solution_paths(problem.meta, Random(seed), 8):
            scope = {}
            exec("\n".join(path), scope)
            assert isclose(scope["answer"], problem.answer, rel_tol=1e-9, abs_tol=1e-4)
            assert path == tuple(ast.unparse(ast.parse(step)) for step in path)


@examples(10)
@given(seeds, levels)
def test_splits_are_reproducible_and_disjoint(seed, level):
    first, again = (generate_splits(12, 6, 6, seed=seed, difficulty=level) for _ in range(2))
    assert first == again
    questions = [problem.question for problem in [*first.train, *first.dev, *first.test]]
    assert len(set(questions)) == len(questions)


@given(expressions)
def test_rewriting_keeps_the_value(expression):
    for other in variants(expression):
        assert_equal(other, evaluate(expression, VALUES), magnitude(expression))


@given(expressions)
def test_a_spelled_formula_means_the_same(expression):
    assert_equal(parse(spell(expression)), evaluate(expression, VALUES), magnitude(expression))


@given(expressions, expressions)
def test_substituting_a_quantity_keeps_the_value(outer, inner):
    value = evaluate(inner, VALUES)
    assume(abs(value) > 0.01)  # it may be divided by
    written_out = substitute(outer, {"a": inner})
    assert_equal(written_out, evaluate(outer, VALUES | {"a": value}), magnitude(written_out))


def assert_equal(expression: Expression, value: float, size: float) -> None:
    """The expression has this value, up to rounding errors of numbers of this size."""
    assert isclose(evaluate(expression, VALUES), value, rel_tol=1e-9, abs_tol=1e-9 * size)


def magnitude(expression: Expression) -> float:
    """How large the numbers get on the way, however much they cancel."""
    match expression:
        case Sum(plus, minus):
            return sum(magnitude(term) for term in (*plus, *minus))
        case Product(over, under):
            return prod(map(magnitude, over)) / prod(abs(evaluate(factor, VALUES)) for factor in under)
    return abs(evaluate(expression, VALUES))
