"""What makes an answer right is yours to say: a checker for algebra, and tests that a function has to pass.

python examples/own_answer_type.py
"""

from partway import Problem, PythonLanguage, SolutionBuffer, trace
from partway.written.tested import TestedLanguage

POINTS = ((2.0, 3.0), (-1.5, 0.25), (7.0, -4.0))


def same_expression(value: object, answer: object) -> bool:
    """Whether two formulas in x and y agree wherever they are tried; named in a config as module:function."""
    return all(_value_at(str(value), *point) == _value_at(str(answer), *point) for point in POINTS)


def _value_at(formula: str, x: float, y: float) -> object:
    found = trace(f"x = {x}\ny = {y}\nanswer = {formula}")  # what a model wrote is never evaluated by Python
    return round(found.answer, 6) if found.has_answer else formula


ALGEBRA = PythonLanguage(checker=same_expression)
SQUARE = Problem("square", "Expand (x + y)².", "x**2 + 2*x*y + y**2", "answer = 'x*x + 2*x*y + y*y'")
FORMULAS = {
    "another way": "answer = '*'.join(['(x + y)', '(x + y)'])",
    "wrong": "answer = 'x**2 + y**2'",
}

TESTED = TestedLanguage()
EVENS = Problem(
    "evens",
    "Write evens(numbers), the even ones in order.",
    ["assert evens([1, 2, 4]) == [2, 4]", ["evens([3])", []]],
    "def evens(numbers):\n    return [n for n in numbers if n % 2 == 0]",
)
FUNCTIONS = {
    "a filter": "def evens(numbers):\n    return list(filter(lambda n: not n % 2, numbers))",
    "the odd ones": "def evens(numbers):\n    return [n for n in numbers if n % 2]",
}


def main() -> None:
    for problem, language, samples in ((SQUARE, ALGEBRA, FORMULAS), (EVENS, TESTED, FUNCTIONS)):
        buffer = SolutionBuffer.seeded(problem, language=language)
        for name, text in samples.items():
            print(f"{name:>14}: {buffer.consider(trace(text, language, problem))}")


if __name__ == "__main__":
    main()
