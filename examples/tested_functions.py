"""Functions that tests check (MBPP): a wrong one whose statements begin right is partially correct inside.

python examples/tested_functions.py
"""

from partway import Problem, PythonPrograms, SolutionBuffer, trace
from partway.buffer import Rules
from partway.execution.checkers import TESTS

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
    programs = PythonPrograms(checker=TESTS, program_forms="written")
    problem = Problem("area", "What is left inside a border?", CHECKS, programs.parse(REFERENCE))
    inside = programs.entered(trace(REFERENCE, programs), CHECKS)  # called as the first test does
    for step, state in zip(inside.solution.steps, inside.states, strict=True):
        print(f"{{{state}}}".ljust(24), step.splitlines()[-1])

    buffer = SolutionBuffer.seeded(problem, Rules(stitch=True), programs)
    print(buffer.consider(trace(SAMPLE, programs)))
    print(buffer.stitched[0])


if __name__ == "__main__":
    main()
