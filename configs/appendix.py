"""What a model finds for the problems of the paper's appendix.

    python configs/appendix.py MODEL data/mathqa      # or data/gsm8k

Forty rounds of ten samples of each problem, guided by what was found before, as in training.
"""

import sys
from pathlib import Path

from partway import SolutionBuffer, load_problems, trace
from partway.models.engine import SamplingSettings
from partway.models.loading import load_model
from partway.sampling.guided import sample_solutions
from partway.sampling.local_engine import LocalEngine

PROBLEMS = (
    *("mathqa/train/896", "mathqa/train/27988", "mathqa/dev/156"),
    *("gsm8k-train-102", "gsm8k-train-107"),
)
ROUNDS, SAMPLES = 40, 10


def main(model: str, directory: Path) -> None:
    given = [p for split in ("train", "dev") for p in load_problems(directory / f"{split}.jsonl")]
    problems = [problem for problem in given if problem.id in PROBLEMS]
    buffers = {problem.id: SolutionBuffer.seeded(problem) for problem in problems}
    engine, settings = LocalEngine(load_model(model)), SamplingSettings(max_completion_length=200)
    for seed in range(ROUNDS):
        for request, draws in sample_solutions(engine, problems, buffers, settings, SAMPLES, seed):
            for draw in draws:
                buffers[request.problem.id].consider(trace(draw.text))
    for problem in problems:
        buffer = buffers[problem.id]
        print(f"\n{problem.id}: {problem.question}\n  reference: {'; '.join(buffer.fully_correct[0].steps)}")
        for solution in buffer.fully_correct[1:]:
            print(f"  fully correct: {'; '.join(solution.steps)}")
        for solution in buffer.partially_correct:
            print(f"  partially correct: {'; '.join(solution.steps)}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
