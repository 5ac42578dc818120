"""Functions that tests check (MBPP): a wrong one whose statements begin right is partially correct inside.

python examples/tested_functions.py
"""

from partway import Problem, SolutionBuffer, trace
from partway.written.tested import TestedLanguage

REFERENCE = """\
def area_inside(width, height, border):
    w = width - 2 * border
    h = height - 2 * border
    return w * h
"""

SAMPLE = """\
def area_inside(a, b, k):
    high = b - 2 * k
    wide = a - 2 * k
    return wide + high
"""

CHECKS = ["assert area_inside(10, 9, 1) == 56", ["area_inside(5, 6, 2)", 2]]


def main() -> None:
    language = TestedLanguage()
    problem = Problem("area", "What is left inside a border?", CHECKS, language.parse(REFERENCE))
    inside = trace(REFERENCE, language, problem)  # called as the first test does
    for step, state in zip(inside.solution.steps, inside.states, strict=True):
        print(f"{{{state}}}".ljust(24), step.splitlines()[-1])

    buffer = SolutionBuffer.seeded(problem, language=language)
    print(buffer.consider(trace(SAMPLE, language, problem)))
    print(buffer.partially_correct[0])


if __name__ == "__main__":
    main()
