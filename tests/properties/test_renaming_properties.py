"""Renaming statement by statement against renaming a whole program's tree."""

import ast

from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, names, programs

from partway import Solution
from partway.errors import SolutionError
from partway.solution import alpha_form

# What the arithmetic of the other strategies lacks: blocks, scopes, and names in places where text may lie.
AWKWARD = [
    "if n0:\n    x = n1\nelse:\n    t0 = x",
    "for x in n0:\n    n1 += x",
    "def t0(n0, x=t1):\n    global n1\n    n1 = n0\n    return x",
    "t0 = [x * n0 for x in n1 if x]",
    "t1 = n0 if n1 else (x := 3)",
    "x = f'n0 {n0!r:>{n1}} \u00a1 {t0[\"n1\"]}'",
    "n0 = 'n0 \\xa1 \\xa2'; n1 = n0",
    "(n0, *n1), t0 = x",
    "n0: t1 = 2.0",
    "n1.x = n0",
    "t0 = lambda x: x + n0",
    "étage = 3 * ﬁn\nﬁn = étage",
    "# nothing",
    "answer = n0",
]


@st.composite
def awkward_programs(draw: st.DrawFn) -> str:
    lines = draw(st.lists(st.one_of(programs(), st.sampled_from(AWKWARD)), max_size=6))
    return "\n".join(lines)


def renamed_whole(solution: Solution, answer_variable: str, numbers: bool) -> Solution:
    tree = ast.parse(solution.text)
    nodes = list(parents_first(tree))
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    new = {answer_variable: answer_variable}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in assigned:
            node.id = new.setdefault(node.id, f"v{len(new) - 1}")
        elif numbers and isinstance(node, ast.Constant) and type(node.value) is float:
            is_whole = abs(node.value) < 2**53 and node.value == int(node.value)
            node.value = int(node.value) if is_whole else node.value
    return Solution(tuple(ast.unparse(statement) for statement in tree.body))


def parents_first(node: ast.AST):  # type: ignore[no-untyped-def]
    yield node
    for child in ast.iter_child_nodes(node):
        yield from parents_first(child)


@examples(300)
@given(awkward_programs(), st.one_of(names, st.just("answer")), st.booleans(), st.booleans())
def test_a_renamed_solution_is_its_tree_renamed(
    text: str, answer_variable: str, numbers: bool, by_line: bool
) -> None:
    # Steps are statements, or lines where programs are kept as they were written.
    try:
        solution = Solution(tuple(text.split("\n"))) if by_line else Solution.parse(text, "")
        expected = renamed_whole(solution, answer_variable, numbers)
    except (SolutionError, SyntaxError):
        return
    assert alpha_form(solution, answer_variable, numbers=numbers) == expected
