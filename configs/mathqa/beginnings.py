"""What a run's right beginnings are good for: `python configs/mathqa/beginnings.py runs/mathqa_fcs_pcs`.

Counts the partially-correct solutions by whether a fully-correct one can go on from them. Some reach the
values of a whole solution without naming the answer, and nothing is left to do; some lack an import that the
rest needs.
"""

import sys
from collections import Counter

from partway import Solution
from partway.buffer import SolutionBuffer
from partway.runs import Run


def main(directory: str) -> None:
    counts: Counter[str] = Counter()
    for buffer in Run.at(directory).buffers().values():
        counts.update(kind_of(beginning, buffer) for beginning in buffer.partially_correct)
    for kind, count in counts.most_common():
        print(f"{count:6,}  {100 * count / counts.total():3.0f}%  {kind}")


def kind_of(beginning: Solution, buffer: SolutionBuffer) -> str:
    whole_ones = buffer.programs.trace_all([solution.text for solution in buffer.fully_correct])
    (trace,) = buffer.programs.trace_all([beginning.text])
    reached = trace.states[-1]
    if any(whole.states[-1] == reached for whole in whole_ones):
        return "ends where a whole solution ends, without its answer"
    followed = [prefix for whole in whole_ones for prefix, state in whole.prefixes() if state == reached]
    if followed and all(imports(prefix) - imports(beginning) for prefix in followed):
        return "lacks an import of every solution that it could go on as"
    return "can go on as a solution does"


def imports(solution: Solution) -> set[str]:
    return {step for step in solution.steps if step.startswith(("import ", "from "))}


if __name__ == "__main__":
    main(sys.argv[1])
