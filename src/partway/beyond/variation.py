"""Finds solutions that are right by luck: runs them and the reference with other numbers than the question's.

Two programs that compute the same relation agree whatever the numbers are; one that is right only for the
numbers at hand does not (a polynomial identity test by random evaluation). Numbers that do not stand in the
question, and 0, 1, 2 and 3, which programs use for themselves, stay as they are.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, product
from typing import Any, Literal, Protocol, cast, runtime_checkable

from partway.language.language import Language, Trace, is_number, tests_of
from partway.language.python import trace_all
from partway.problem import Problem
from partway.solution import Solution
from straightline.parsing import UNPARSABLE, parse_tree

Belief = Literal["confirmed", "spurious", "undecided"]

DRAWS = 6  # with all numbers changed, after one for each number changed alone
TRIES = 12  # for each draw; those that fail are drawn again
MAX_MATCHINGS = 64
MAX_CHARACTERS = 4_000  # of a program that is run a hundred times
MAX_DIGITS = 300
LARGEST = 10**MAX_DIGITS  # far larger whole numbers are not floats
FIXED = frozenset({0, 1, 2, 3})
COMMON = frozenset({0.5, 7, 10, 12, 24, 52, 60, 100, 365, 1000})  # everybody knows them
ROUNDING = frozenset({"int", "round", "floor", "ceil"})
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
WORDS = {word: number for number, word in enumerate(_SMALL.split())}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
_NUMBER = re.compile(
    r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(\s?%| percent)?|([A-Za-z]+)(?:-([A-Za-z]+))?"
)


@dataclass(frozen=True, slots=True)
class Audit:
    """Whether a solution does what the reference does with other numbers, and what tells."""

    verdict: Belief
    reason: str = ""


@dataclass(frozen=True)
class Numbers:
    """The numbers that stand in a question: how often each does, and which are per cents."""

    counts: Mapping[float, int]
    percents: frozenset[float]

    def source(self, literal: float) -> tuple[float, Callable[[float], float]] | None:
        """The number of the question that a literal comes from, and how; None if it stands nowhere."""
        if literal in self.counts:
            return literal, lambda value: value
        if not abs(literal) < LARGEST:
            return None
        for percent in sorted(self.percents):
            for form in _FACTORS:
                if abs(form(percent) - literal) < 1e-9:
                    return percent, form
        # `* 0.25` is `/ 4`: a literal may be one part of a number.
        of = next((number for number in sorted(self.counts) if number > 3 and 1 / number == literal), None)
        return None if of is None else (of, lambda value: 1 / value)


# What a per cent is as a factor: the share itself, what is left without it, the whole with it on top.
_FACTORS: tuple[Callable[[float], float], ...] = (
    lambda percent: round(percent / 100, 10),
    lambda percent: round(1 - percent / 100, 10),
    lambda percent: round(1 + percent / 100, 10),
)


@lru_cache(maxsize=10_000)
def numbers_in(question: str) -> Numbers:
    """The numbers of a question, also those written as words.

    >>> dict(numbers_in("Twenty-five of 1,200 pens, 5% of five kinds, cost $2.50.").counts)
    {25: 1, 1200: 1, 5: 2, 2.5: 1}
    """
    counts: Counter[float] = Counter()
    percents = set()
    for whole, decimals, percent, word, second in _NUMBER.findall(question):
        if len(whole) > MAX_DIGITS:
            continue
        if whole:
            number = float(whole.replace(",", "") + decimals) if decimals else int(whole.replace(",", ""))
        elif word.lower() in WORDS:
            number = WORDS[word.lower()]
            number += WORDS.get(second.lower(), 0) if number >= 20 else 0
        else:
            continue
        counts[number] += 1
        if percent:
            percents.add(number)
    return Numbers(counts, frozenset(percents))


def strange_literals(solution: Solution, question: str, language: object = None) -> tuple[float | str, ...]:
    """Numbers of a solution that stand nowhere in the question and are not such as everybody knows.

    A language with other contexts says itself what stands nowhere.

    >>> strange_literals(Solution.parse("n0 = 30\\nn1 = 5\\nanswer = n0 * n1"), "50 pens for 3 dollars")
    (30, 5)
    """
    if isinstance(language, Varied):
        return language.strange_literals(solution, question)
    known = numbers_in(question)
    return tuple(
        v for v in _Program(solution).original if v not in FIXED | COMMON and known.source(v) is None
    )


def audit(problem: Problem, solution: Solution, language: Language) -> Audit:
    """Whether `solution` answers as the reference does when the question's numbers are changed."""
    reference = problem.reference
    assert reference is not None, "without a reference solutions are compared with each other"
    if tests_of(problem, language) is not None:
        return Audit("undecided", "tests say what is right, not a number")
    if others := _variations(problem, language):
        return _elsewhere(others, reference, solution, language)
    if max(len(reference.text), len(solution.text)) > MAX_CHARACTERS:
        return Audit("undecided", f"a program of more than {MAX_CHARACTERS:,} characters is not run again")
    found = _Comparison(problem, reference, solution, language).verdict()
    if found.verdict == "spurious" and any(map(_rounds, (reference, solution))):
        exact = _Comparison(problem, reference, solution, language, is_smooth=True).verdict()
        if exact.verdict == "confirmed":  # whole for these numbers, so that rounding did nothing
            return exact
    return found


@runtime_checkable
class Varied(Protocol):
    """A language may put a problem into other contexts, where luck shows itself."""

    def variations(self, problem: Problem) -> Sequence[Problem]:
        """The same problem in other contexts."""

    def strange_literals(self, solution: Solution, question: str) -> tuple[str, ...]:
        """What a solution takes from nowhere."""


def _variations(problem: Problem, language: Language) -> Sequence[Problem]:
    return language.variations(problem) if isinstance(language, Varied) else ()


def _elsewhere(
    others: Sequence[Problem], reference: Solution, solution: Solution, language: Language
) -> Audit:
    """Whether a solution answers as the reference does in other contexts of the problem."""
    traces = language.trace_all([(one, text) for one in others for text in (reference.text, solution.text)])
    for number, (one, expected, found) in enumerate(zip(others, traces[::2], traces[1::2], strict=True), 1):
        if expected.has_answer and not language.is_correct(replace(one, answer=expected.answer), found):
            said = f"{_shown(found.answer)}, the reference {_shown(expected.answer)}"
            return Audit("spurious", f"in another context (number {number}) it gives {said}")
    return Audit("confirmed")


def signature(problem: Problem, solution: Solution, language: Language) -> tuple[Any, ...]:
    """What a solution answers under changed numbers, the same changes for every solution of a question."""
    if others := _variations(problem, language):
        found = language.trace_all([(one, solution.text) for one in others])
        return tuple(one.states[-1] if one.has_answer else None for one in found)
    program, known = _Program(solution), numbers_in(problem.question)
    rng = random.Random(problem.question)
    texts = []
    for _ in range(DRAWS):
        new = {value: _drawn(value, value in known.percents, rng) for value in sorted(known.counts)}
        values = []
        for literal in program.original:
            source = None if literal in FIXED else known.source(literal)
            values.append(literal if source is None else source[1](new[source[0]]))
        texts.append(program.text_with(values))
    answers = [one.answer if one.has_answer else None for one in trace_all(texts, language, problem)]
    return tuple(_rounded(answer) if is_number(answer) else repr(answer) for answer in answers)


def _rounded(number: Any) -> str:
    try:
        return f"{float(number):.6g}"
    except (OverflowError, ValueError):  # beyond floats, or a signalling NaN
        return str(number)


class _Program:
    """A solution whose number literals can be given other values."""

    def __init__(self, solution: Solution, is_smooth: bool = False) -> None:
        try:
            self.tree = parse_tree(solution.text)
        except UNPARSABLE:  # nested too deep to be read again
            self.tree = ast.Module([], [])
        self.text = "" if self.tree.body else solution.text
        if is_smooth:
            self.tree = ast.fix_missing_locations(_Smooth().visit(self.tree))
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.Constant)]
        self.literals = [node for node in nodes if type(node.value) in (int, float)]
        self.original: list[float] = [cast(float, literal.value) for literal in self.literals]

    def text_with(self, values: Sequence[float]) -> str:
        """The program with these values in place of its literals."""
        if self.text:
            return self.text
        for literal, value in zip(self.literals, values, strict=True):
            literal.value = value
        return ast.unparse(self.tree)


class _Smooth(ast.NodeTransformer):
    """Division as it is, without rounding."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return ast.BinOp(node.left, ast.Div(), node.right) if isinstance(node.op, ast.FloorDiv) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        return node.args[0] if name in ROUNDING and len(node.args) == 1 else node


def _rounds(solution: Solution) -> bool:
    return "//" in solution.text or any(f"{name}(" in solution.text for name in ROUNDING)


@dataclass(frozen=True)
class _Input:
    """A number of the question, as one or as one of several equal ones of the reference."""

    value: float
    number: int = 0


class _TakesLong(Exception):
    """A program ran out of time: it would again for the next numbers, a second each."""


class _Comparison:
    """The reference and a solution beside each other, run with the same changed numbers."""

    def __init__(
        self,
        problem: Problem,
        reference: Solution,
        solution: Solution,
        language: Language,
        is_smooth: bool = False,
    ) -> None:
        self.problem, self.language = problem, language
        self.known = numbers_in(problem.question)
        self.reference, self.solution = _Program(reference, is_smooth), _Program(solution, is_smooth)
        # Seeded by what is compared: the verdict is the same whenever and wherever it is asked for.
        self.rng = random.Random(f"{reference.text}\n\n{solution.text}")
        self.places = self._places(self.reference)
        self.is_signed = False

    def verdict(self) -> Audit:
        """Confirmed if some matching agrees on every draw."""
        if not self.places:
            return Audit("undecided", "the reference takes no number from the question that can be changed")
        (original,) = self._run([self.reference.text_with(self.reference.original)])
        self.is_signed = _has_negative(original)
        matchings = list(islice(self._matchings(), MAX_MATCHINGS + 1))
        if len(matchings) > MAX_MATCHINGS:
            return Audit("undecided", f"more than {MAX_MATCHINGS} ways to match equal numbers")
        left, decided = list(range(len(matchings))), 0
        reason = ""
        for changed in self._changes():
            try:
                told = self._draw(changed, [matchings[index] for index in left])
            except _TakesLong:
                return Audit("undecided", "with other numbers it takes too long")
            if told is None:
                continue
            decided += 1
            agreeing, reason = told
            left = [index for index, agrees in zip(left, agreeing, strict=True) if agrees]
            if not left:
                return self._disagreement(reason)
        if decided < DRAWS:
            return Audit("undecided", "with other numbers it fails too often")
        return Audit("confirmed")

    def _run(self, texts: Sequence[str]) -> list[Trace]:
        return trace_all(texts, self.language, self.problem)

    def _disagreement(self, reason: str) -> Audit:
        if any(place.number for place in self.places.values()):
            # Perhaps the question says one number twice: then all literals like it change together.
            merged = {place: _Input(of.value) for place, of in self.places.items()}
            self.places, self.rng = merged, random.Random(0)
            if self.verdict().verdict == "confirmed":
                return Audit("undecided", "agrees only if equal numbers of the question are one and the same")
        return Audit("spurious", reason)

    def _places(self, program: _Program) -> dict[int, _Input]:
        """For each literal that comes from the question the input it is."""
        sources = {
            index: source[0]
            for index, value in enumerate(program.original)
            if value not in FIXED and (source := self.known.source(value)) is not None
        }
        seen: Counter[float] = Counter()
        places = {}
        for index, value in sources.items():
            # 5 boys and 5 girls: which 5 a literal stands for is not known yet.
            is_several = self.known.counts[value] > 1 and value == program.original[index]
            places[index] = _Input(value, seen[value] if is_several else 0)
            seen[value] += 1
        return places

    def _matchings(self) -> Iterator[dict[int, _Input]]:
        """Every way in which the solution's literals can be the reference's inputs."""
        inputs: dict[float, list[_Input]] = {}
        for place in dict.fromkeys(self.places.values()):
            inputs.setdefault(place.value, []).append(place)
        own = self._places(self.solution)
        choices = {index: inputs[place.value] for index, place in own.items() if place.value in inputs}
        for chosen in product(*choices.values()):
            yield dict(zip(choices, chosen, strict=True))

    def _changes(self) -> list[list[_Input]]:
        inputs = list(dict.fromkeys(self.places.values()))
        # Alone first: where one number was taken for another, this shows it.
        alone = [[one] for one in inputs] if len(inputs) > 1 else []
        return [*alone, *([inputs] * DRAWS)]

    def _draw(
        self, changed: Sequence[_Input], matchings: Sequence[dict[int, _Input]]
    ) -> tuple[list[bool], str] | None:
        """Which matchings agree when some inputs change, and what tells the last; None if draws fail."""
        for _ in range(TRIES):
            new = {one: _drawn(one.value, one.value in self.known.percents, self.rng) for one in changed}
            wholes = [self._with(self.solution, matching, new) for matching in matchings]
            expected, *traces = self._run([self._with(self.reference, self.places, new), *wholes])
            if any(one.failure and one.failure.kind == "timeout" for one in (expected, *traces)):
                raise _TakesLong
            fails = not expected.has_answer or (_has_negative(expected) and not self.is_signed)
            if fails or not all(trace.has_answer for trace in traces):
                continue
            as_expected = replace(self.problem, answer=expected.answer)
            agreeing = [self.language.is_correct(as_expected, trace) for trace in traces]
            values = " and ".join(f"{_shown(new[one])} instead of {_shown(one.value)}" for one in changed)
            told = (
                f"with {values} it gives {_shown(traces[-1].answer)}, the reference {_shown(expected.answer)}"
            )
            return agreeing, told
        return None

    def _with(self, program: _Program, places: Mapping[int, _Input], new: Mapping[_Input, float]) -> str:
        values = list(program.original)
        for index, place in places.items():
            if place in new:
                source = self.known.source(program.original[index])
                assert source is not None, "only literals that come from the question are changed"
                values[index] = source[1](new[place])
        return program.text_with(values)


def _has_negative(trace: Trace) -> bool:
    """Whether a variable was ever below zero: for counts and prices such a draw says nothing."""
    values = (value[0] for changes in trace.changes for value in changes.values() if value is not None)
    return any(is_number(value) and _is_negative(value) for value in values)


def _is_negative(value: Any) -> bool:
    try:
        return bool(value < 0)
    except ArithmeticError:  # a decimal that is not a number
        return False


def _drawn(value: float, is_percent: bool, rng: random.Random) -> float:
    """Another value of the same kind and size."""
    while True:
        if is_percent and value < 100:
            new: float = rng.randrange(5, 95)
        elif isinstance(value, int):
            # Not below 4: smaller ones are what programs use for themselves.
            new = rng.randint(max(4, value // 2), max(2 * value, value + 10))
        else:
            new = round(value * rng.uniform(0.5, 1.9), 3)
            new = min(new, 0.99) if value < 1 else new
        if new != value:
            return new


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:40]
