"""Programs as people write them, read as straight-line steps: functions that return, last lines that print.

`def solution(): ... return x` (PAL), a last line `print(x)` or `x` (PoT) and a main guard have one statement
per step like any other solution; only what is written differs from what is run. The written text is what a
model learns to write; `return x` and `print(x)` stand for assigning the answer.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from textwrap import indent
from typing import Literal

from partway.language.language import Attempt, Instruction, Trace
from partway.language.python import PythonLanguage, trace_texts
from partway.solution import Solution
from straightline import longest_parsed

SolutionEnd = Literal["first_assignment", "end_of_text"]

MAIN_GUARDS = ("__name__ == '__main__'", "'__main__' == __name__")
HEADER = "    "  # as `ast.unparse` indents
UNFINISHED = "="  # no statement: what is cut off in the middle fails at its place as it does elsewhere


@dataclass(frozen=True)
class WrittenLanguage(PythonLanguage):
    """Python as people write it: steps, a function that returns, a last line that prints, a main guard."""

    solution_end: SolutionEnd = field(
        default="first_assignment",
        metadata={
            "help": "Where a solution ends: after the first step that assigns the answer variable, or at the "
            "end of its text, so that later steps may change the answer."
        },
    )

    @property
    def ends_with(self) -> str:
        return self.answer_variable if self.solution_end == "first_assignment" else ""

    def parse(self, text: str) -> Solution:
        written = read_written(text, self.answer_variable)
        return super().parse(text) if written is None or written.is_cut else Solution(written.steps)

    def trace_all(self, pairs: Sequence[Attempt]) -> list[Trace]:
        forms = [read_written(text, self.answer_variable) for _, text in pairs]
        written = iter(trace_texts([form.source for form in forms if form is not None], self.state, ""))
        others = [pair for pair, form in zip(pairs, forms, strict=True) if form is None]
        plain = iter(super().trace_all(others))
        return [self._answered(next(plain) if form is None else form.traced(next(written))) for form in forms]

    def _answered(self, trace: Trace) -> Trace:
        """The trace with what the answer variable holds at the end, if everything ran."""
        if trace.failure is not None or self.answer_variable not in (variables := trace.variables):
            return trace
        return trace._replace(outcome=(variables[self.answer_variable],))

    @property
    def instruction(self) -> Instruction:
        ending = f"returns the answer from a function or assigns it to {self.answer_variable!r}"
        return replace(super().instruction, ending=ending)

    def end(self, text: str) -> int | None:
        end = end_of_function(text) if "return" in text else None
        return super().end(text) if end is None else end


@dataclass(frozen=True, slots=True)
class Written:
    """A program in one of the forms: each step as written, and the straight-line step that is run for it."""

    steps: tuple[str, ...]
    run: tuple[str, ...]
    is_cut: bool = False  # text after these steps does not parse

    @property
    def source(self) -> str:
        """The straight-line program."""
        return "\n".join([*self.run, *([UNFINISHED] if self.is_cut else [])])

    def traced(self, run: Trace) -> Trace:
        """The trace of what was run, as it was written: each step that was run stands for one of these."""
        return run._replace(solution=Solution(self.steps[: len(run.solution)]))


def read_written(text: str, answer_variable: str) -> Written | None:
    """The steps of a program that is in one of the forms, None if it is in none.

    >>> written = read_written("def solution():\\n    n0 = 5\\n    return n0 * 2", "answer")
    >>> written.steps, written.run
    (('def solution():\\n    n0 = 5', '    return n0 * 2'), ('n0 = 5', 'answer = n0 * 2'))
    >>> read_written("n0 = 5\\nprint(n0 * 2)", "answer").run
    ('n0 = 5', 'answer = n0 * 2')
    """
    body, is_cut = longest_parsed(text)
    try:
        return _read(body, answer_variable, is_cut) if body else None
    except RecursionError:  # nested too deep to be spelled from here
        return None


def _read(body: Sequence[ast.stmt], answer: str, is_cut: bool) -> Written | None:
    before = 0  # imports may stand before a function
    while before < len(body) and isinstance(body[before], (ast.Import, ast.ImportFrom)):
        before += 1
    match body[before:]:
        case [ast.FunctionDef(args=arguments) as function, *rest] if not any(
            (arguments.args, arguments.posonlyargs, arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        ):
            if not all(_only_calls(statement, function.name) for statement in rest):
                return None
            return in_block(body[:before], f"def {function.name}():", function.body, answer, is_cut)
        case [*straight, ast.If(test=test, body=inner, orelse=[])] if ast.unparse(test) in MAIN_GUARDS:
            return in_block([*body[:before], *straight], f"if {ast.unparse(test)}:", inner, answer, is_cut)
        case [*_, ast.Expr()] if not is_cut and not _assigns(body, answer):
            return _joined([(ast.unparse(s), s) for s in body], answer, is_cut)
    return None


def in_block(
    before: Sequence[ast.stmt], header: str, inner: Sequence[ast.stmt], answer: str, is_cut: bool
) -> Written | None:
    """Steps inside a function or a guard; its first line belongs to the first of them."""
    returns = [node for statement in inner for node in ast.walk(statement) if isinstance(node, ast.Return)]
    if returns and returns != [inner[-1]]:
        return None  # several ways out: one step, as any compound statement
    written = [indent(ast.unparse(statement), HEADER) for statement in inner]
    written[0] = f"{header}\n{written[0]}"
    pairs = [*((ast.unparse(s), s) for s in before), *zip(written, inner, strict=True)]
    return _joined(pairs, answer, is_cut)


def _joined(pairs: Sequence[tuple[str, ast.stmt]], answer: str, is_cut: bool) -> Written:
    *statements, last = (statement for _, statement in pairs)
    run = [ast.unparse(statement) for statement in statements]
    return Written(tuple(step for step, _ in pairs), (*run, _answering(last, answer)), is_cut)


def _answering(statement: ast.stmt, answer: str) -> str:
    """The last step, as the assignment of the answer that it stands for."""
    match statement:
        case ast.Return(value=ast.expr() as value):
            pass
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[value], keywords=[])):
            pass
        case ast.Expr(value=value) if not isinstance(value, (ast.Call, ast.Constant)):
            pass
        case _:
            return ast.unparse(statement)
    return f"{answer} = {ast.unparse(value)}"


def _only_calls(statement: ast.stmt, name: str) -> bool:
    """Whether a statement after a function does nothing but use it."""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return isinstance(statement, (ast.Expr, ast.Assign, ast.If)) and name in names


def _assigns(body: Sequence[ast.stmt], answer: str) -> bool:
    nodes = (node for statement in body for node in ast.walk(statement))
    return any(isinstance(n, ast.Name) and n.id == answer and isinstance(n.ctx, ast.Store) for n in nodes)


def end_of_function(text: str) -> int | None:
    """Where the line ends that returns from the function that `text` defines; None if none does yet."""
    start = end = open_brackets = 0
    is_inside = False
    for line in text.split("\n")[:-1]:  # the last line is still being written
        end += len(line) + 1
        is_inside = is_inside or line.startswith("def ")
        open_brackets += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if open_brackets == 0:
            if is_inside and text[start:end].startswith(f"{HEADER}return"):
                return end
            start = end
    return None
