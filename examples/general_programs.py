"""Loops, functions and strings run in isolated workers; a compound statement is one step with one state.

python examples/general_programs.py
"""

from partway import Problem, SolutionBuffer, trace

REFERENCE = """\
def interest(balance):
    return balance * 1.05

balance = 1000
for year in range(3):
    balance = interest(balance)
answer = round(balance, 2)
"""

SAMPLE = """\
start = 1000
for step in range(2):
    start *= 1.05
answer = start
"""


def main() -> None:
    reference = trace(REFERENCE)
    for step, state in zip(reference.solution.steps, reference.states, strict=True):
        print(f"{{{state}}}".ljust(24), step.splitlines()[0])

    problem = Problem("savings", "$1000 at 5% for 3 years?", 1157.62, REFERENCE)
    buffer = SolutionBuffer.seeded(problem)
    print(buffer.consider(trace(SAMPLE)), "keeps", buffer.partially_correct)

    for hostile in ["while True:\n    pass", "import os\nos.remove('/')", "x = [0] * 10**11"]:
        failure = trace(hostile).failure
        assert failure is not None
        print(f"{failure.kind}: {failure.message}")


if __name__ == "__main__":
    main()
