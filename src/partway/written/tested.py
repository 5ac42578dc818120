"""Functions under test: the body of a function is run as steps, on the arguments of the first test.

A beginning of a function cannot be tested, but it can be run. What its statements make of the arguments that
the first test gives is compared with what those of known solutions make of them, as for any other program.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from partway.language.language import Attempt, Dedup, Instruction, Language, Trace, independently
from partway.language.python import run_isolated, trace_texts
from partway.problem import Problem
from partway.solution import ANSWER_VARIABLE, Solution, alpha_form
from partway.written.forms import Written, in_block
from straightline import Failure, StateMode, longest_parsed
from straightline.parsing import UNPARSABLE, parse_tree
from undertest import objection, passes


@dataclass(frozen=True)
class TestedLanguage(Language):
    """Python functions under test (MBPP, HumanEval): the answer of a problem is a list of assertions."""

    __test__ = False  # not a test of pytest's

    state: StateMode = field(
        default="multiset", metadata={"help": "How states are compared, as for `python`."}
    )

    def parse(self, text: str) -> Solution:
        function = read_function(text)
        if function is None or function.written.is_cut:
            return Solution.parse(text, "")
        return Solution(function.written.steps)

    def trace_all(self, pairs: Sequence[Attempt]) -> list[Trace]:
        functions = [read_function(text) for _, text in pairs]
        bodies = [
            None if function is None else function.opened(self.tests(problem) or ())
            for (problem, _), function in zip(pairs, functions, strict=True)
        ]
        # All at once: the bodies of functions, and what is not a function as it is.
        sources = [body.source if body else text for (_, text), body in zip(pairs, bodies, strict=True)]
        runs = trace_texts(sources, self.state, "")
        return [
            run if function is None else self._entered(problem, function, body.trace(run) if body else None)
            for (problem, _), function, body, run in zip(pairs, functions, bodies, runs, strict=True)
        ]

    def _entered(self, problem: Problem, function: Function, found: Trace | None) -> Trace:
        """The trace of a function's steps, run on the arguments of the first test.

        A function that cannot be run so keeps its steps without states: it is right or wrong as a whole.
        """
        # What passes its tests but fails when opened is right for reasons that its steps do not show.
        if found is None or (found.failure is not None and self.is_correct(problem, unopened(function))):
            return unopened(function)
        return found

    def is_correct(self, problem: Problem, trace: Trace) -> bool:
        tests = self.tests(problem)
        if tests is None or trace.failure is not None or not trace.solution.steps:
            return False
        return passes(trace.solution.text, tuple(tests), run_isolated)

    def confirms(self, problem: Problem, trace: Trace) -> bool:
        """What passed its tests passes them again, in processes of another layout."""
        if not super().confirms(problem, trace):
            return False
        if not self.is_correct(problem, trace):
            return True
        with independently():
            return passes(trace.solution.text, tuple(self.tests(problem) or ()), run_isolated, anew=True)

    def flaw(self, problem: Problem) -> str | None:
        tests = self.tests(problem)
        if tests is not None:
            return objection(tuple(tests), run_isolated)
        return (
            f"expected a list of assertions or of [call, expected value], found {str(problem.answer)[:60]!r}"
        )

    def tests(self, problem: Problem) -> list[str] | None:
        """The assertions: texts, or calls with the value each should give.

        >>> answer = ["assert double(2) == 4", ["double(3)", 6], {"call": "double('a')", "expected": "aa"}]
        >>> TestedLanguage().tests(Problem("p", "?", answer))
        ['assert double(2) == 4', 'assert (double(3)) == (6)', "assert (double('a')) == ('aa')"]
        """
        listed = problem.answer if isinstance(problem.answer, (list, tuple)) else ()
        tests = [_assertion(test) for test in listed]
        return [test for test in tests if test] if tests and all(tests) else None

    def form(self, solution: Solution, dedup: Dedup) -> Solution:
        return solution if dedup == "ast" else alpha_form(solution, "", numbers=dedup == "spelling")

    @property
    def instruction(self) -> Instruction:
        return Instruction("Python", "passes its tests", fence="python")


def _assertion(test: Any) -> str | None:
    match test:
        case str():
            return test
        case [str() as call, expected] | {"call": str() as call, "expected": expected}:
            return f"assert ({call}) == ({expected!r})"
    return None


@dataclass(frozen=True)
class Function:
    """The last function of a text, with its statements as steps after what stands before it."""

    node: ast.FunctionDef
    before: tuple[str, ...]
    written: Written

    def opened(self, tests: Sequence[str]) -> Opened | None:
        """The body as a straight-line program for the arguments of the first test; None if it has none."""
        inputs = _inputs(self.node, _first_call(tests, self.node.name))
        if inputs is None:
            return None
        # A function that calls itself must be there when its body runs.
        own = [ast.unparse(self.node)] if _mentions(self.node, self.node.name) else []
        body = self.written.run[len(self.before) :]
        source = Written(self.written.steps, (*self.before, *own, *inputs, *body), self.written.is_cut).source
        return Opened(self, source, len(own) + len(inputs))


@dataclass(frozen=True)
class Opened:
    """A function's body as a program of its own; `added` steps give it its arguments."""

    function: Function
    source: str
    added: int

    def trace(self, run: Trace) -> Trace | None:
        """The trace of the function's steps from that of the program; None if the arguments fail already."""
        before, failure = len(self.function.before), run.failure
        if len(run.states) < before + self.added:
            return None
        given = run.states[before + self.added - 1] if before + self.added else ""
        states = [*run.states[:before], *run.states[before + self.added :]]
        states = ["" if state == given else state for state in states]  # arguments alone do not count
        changes = [*run.changes[:before], *run.changes[before + self.added :]]
        if len(changes) > before:
            # What the arguments are is news of the first step of the body.
            arguments = run.changes[before : before + self.added]
            changes[before] = {n: v for made in (*arguments, changes[before]) for n, v in made.items()}
        if failure is not None:
            failure = replace(failure, step=failure.step - self.added)
        variables = run.variables
        returns = isinstance(self.function.node.body[-1], ast.Return) and failure is None
        outcome = (variables[ANSWER_VARIABLE],) if returns and ANSWER_VARIABLE in variables else None
        solution = Solution(self.function.written.steps)
        return Trace(solution, tuple(states), tuple(changes), failure, outcome, run.isolated)


def read_function(text: str) -> Function | None:
    """The function that ends a text, if its statements run one after the other to a return at the end.

    >>> function = read_function("def volume(r):\\n    s = r * r\\n    return s * r")
    >>> function.written.steps
    ('def volume(r):\\n    s = r * r', '    return s * r')
    >>> function.opened(["assert volume(2) == 8"]).source
    'r = 2\\ns = r * r\\nanswer = s * r'
    """
    body, is_cut = longest_parsed(text)
    *before, function = body or [ast.Pass()]
    if not isinstance(function, ast.FunctionDef) or _is_special(function):
        return None
    try:
        written = in_block(before, _header(function), function.body, ANSWER_VARIABLE, is_cut)
        earlier = tuple(map(ast.unparse, before))
    except RecursionError:  # nested too deep to be spelled from here
        return None
    return None if written is None else Function(function, earlier, written)


def unopened(function: Function) -> Trace:
    """The trace of a function that nobody has called: steps without states."""
    steps = function.written.steps
    failure = Failure("error", "SyntaxError: the rest does not parse", len(steps))
    return Trace(
        Solution(steps),
        ("",) * len(steps),
        ({},) * len(steps),
        failure if function.written.is_cut else None,
    )


def _is_special(function: ast.FunctionDef) -> bool:
    """Whether the statements of a function mean something else outside it."""
    inner = [node for statement in function.body for node in ast.walk(statement)]
    kinds = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
    arguments = function.args
    is_open = arguments.vararg is not None or arguments.kwarg is not None
    return is_open or bool(function.decorator_list) or any(isinstance(node, kinds) for node in inner)


def _header(function: ast.FunctionDef) -> str:
    """The line that begins a function."""
    bare = ast.FunctionDef(
        function.name, function.args, [ast.Pass()], [], function.returns, lineno=1, col_offset=0
    )
    return ast.unparse(bare).rpartition("\n")[0]


def _first_call(tests: Sequence[str], name: str) -> ast.Call | None:
    """The first call of a function in the first test."""
    try:
        nodes = ast.walk(parse_tree(tests[0] if tests else ""))
    except UNPARSABLE:
        return None
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return next((call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name), None)


def _inputs(function: ast.FunctionDef, call: ast.Call | None) -> list[str] | None:
    """Assignments that give the parameters what a call does; None where a call does not fit."""
    if call is None or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    arguments = function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    optional = names[len(names) - len(arguments.defaults) :]
    # Defaults, then what the call gives by place, then by name: the later one counts.
    given: dict[str | None, ast.expr | None] = dict(zip(optional, arguments.defaults, strict=True))
    given |= dict(zip((one.arg for one in arguments.kwonlyargs), arguments.kw_defaults, strict=True))
    given |= dict(zip(names, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords}
    wanted = [*names, *(one.arg for one in arguments.kwonlyargs)]
    if len(call.args) > len(names) or set(given) - set(wanted):
        return None
    values = [given.get(name) for name in wanted]
    if None in values:
        return None
    return [f"{name} = {ast.unparse(value)}" for name, value in zip(wanted, values, strict=True) if value]


def _mentions(function: ast.FunctionDef, name: str) -> bool:
    names = (node for statement in function.body for node in ast.walk(statement))
    return any(isinstance(node, ast.Name) and node.id == name for node in names)
