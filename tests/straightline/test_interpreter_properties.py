"""The interpreter against CPython, and the fast parser against `ast`."""

import ast
import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from strategies import examples, expressions, is_cheap, names, numbers, programs

from straightline import NotCovered, parse
from straightline.interpreter import interpret
from straightline.parsing import parse_line
from straightline.tracing import _trace_usual, _traced

TWIN = Path(__file__).parents[1] / "cases" / "cpython_twin.py"


class Twin:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(TWIN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, text: str) -> dict:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def twin() -> Iterator[Twin]:
    twin = Twin()
    yield twin
    assert twin.process.stdin is not None
    assert twin.process.stdout is not None
    twin.process.stdin.close()
    twin.process.wait(timeout=10)
    twin.process.stdout.close()


@examples(400)
@given(programs().filter(is_cheap))
def test_the_interpreter_agrees_with_cpython_value_for_value(twin: Twin, text: str) -> None:
    parsed = parse(text, "answer")
    assert parsed.error is None
    try:
        seen = interpret(parsed.statements)
    except NotCovered:
        assume(False)
    if seen.failure is not None and seen.failure.kind == "memory":
        assume(False)
    expected = twin.run(text)
    assert len(seen.changes) == len(expected["states"])
    variables: dict[str, object] = {}
    for changed, values in zip(seen.changes, expected["states"], strict=True):
        variables |= {name: value[0] for name, value in changed.items() if value is not None}
        assert {name: [type(v).__name__, repr(v)] for name, v in variables.items()} == values
    if expected["error"] is None:
        assert seen.failure is None
    else:
        assert seen.failure is not None
        assert seen.failure.step == expected["step"]
        assert seen.failure.message.split(":")[0] == expected["error"]


@examples(500)
@given(names, expressions, st.sampled_from([" = ", "=", "  =  "]))
def test_lines_are_spelled_as_ast_unparse_spells_them(name: str, expression: str, equals: str) -> None:
    line = f"{name}{equals}{expression}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (expected,) = ast.parse(line).body
    statement = parse_line(line)
    assert statement is not None
    assert statement.text == ast.unparse(expected)


@examples(500)
@given(st.text(alphabet="xn01 =+-*/%().9_٣é\t#\\'", max_size=25))
def test_noise_is_parsed_exactly_when_ast_parses_it(line: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = tuple(ast.unparse(node) for node in ast.parse(line).body)
    except (SyntaxError, ValueError):
        assert parse(line, "answer").error is not None
    else:
        assert parse(line, "answer").steps == expected


@st.composite
def plain_programs(draw: st.DrawFn) -> str:
    """Plain arithmetic with a new variable in nearly every step, and now and then something unusual."""
    lines = [f"n{index} = {draw(numbers)}" for index in range(draw(st.integers(1, 3)))]
    for index in range(draw(st.integers(0, 5))):
        known = st.sampled_from([line.split(" ")[0] for line in lines])
        operands = st.one_of(known, known, numbers)
        a, b, c = draw(operands), draw(operands), draw(operands)
        sign, other = draw(st.sampled_from("+-*/")), draw(st.sampled_from(["+", "-", "*", "/", "//", "%"]))
        plain = [f"{a} {sign} {b}", f"{a} {sign} {b} {other} {c}", f"-({a} {sign} {b})", a]
        right = draw(st.sampled_from([*plain, f"{a} {sign} {b}  # {c}", f"max({a}, {b})", f"{a} > {b}"]))
        target = draw(st.sampled_from([f"t{index}"] * 12 + ["n0", "answer"]))
        lines.append(f"{target} = {right}")
    return "\n".join(lines)


@examples(500)
@given(plain_programs())
def test_the_short_way_says_what_the_interpreter_says(text: str) -> None:
    short, parsed = _trace_usual(text, "answer"), parse(text, "answer")
    expected = _traced(parsed, interpret(parsed.statements), "answer", "multiset")
    event("short" if short is not None else "left to the interpreter")
    if short is not None:
        assert repr(short) == repr(expected)
