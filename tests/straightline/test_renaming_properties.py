"""Renaming statement by statement against renaming a whole program's tree."""

import ast

from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, names, programs

from straightline import parse, renamed

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


def renamed_whole(steps: tuple[str, ...], kept: str, numbers: bool) -> tuple[str, ...]:
    tree = ast.parse("\n".join(steps))
    nodes = list(parents_first(tree))
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    new = {kept: kept}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in assigned:
            node.id = new.setdefault(node.id, f"v{len(new) - 1}")
        elif numbers and isinstance(node, ast.Constant) and type(node.value) is float:
            is_whole = abs(node.value) < 2**53 and node.value == int(node.value)
            node.value = int(node.value) if is_whole else node.value
    return tuple(ast.unparse(statement) for statement in tree.body)


def parents_first(node: ast.AST):  # type: ignore[no-untyped-def]
    yield node
    for child in ast.iter_child_nodes(node):
        yield from parents_first(child)


@examples(300)
@given(awkward_programs(), st.one_of(names, st.just("answer")), st.booleans(), st.booleans())
def test_renamed_steps_are_those_of_the_renamed_tree(
    text: str, kept: str, numbers: bool, by_line: bool
) -> None:
    # Steps are statements, or lines where programs are kept as they were written.
    parsed = parse(text)
    steps = tuple(text.split("\n")) if by_line else parsed.steps
    if parsed.error is None:
        assert renamed(steps, kept, numbers=numbers) == renamed_whole(steps, kept, numbers)
