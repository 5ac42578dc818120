"""Train the built-in tiny model on problems of your own, then sample from it.

python examples/own_problems.py
"""

import random
import sys
import tempfile
from pathlib import Path

from partway import EMPTY, Problem, trace
from partway.models.engine import SamplingSettings
from partway.sampling.guided import Request
from partway.training import SelfSamplingConfig, SelfSamplingTrainer


def problem(number: int, rng: random.Random) -> Problem:
    boxes, pens, lost = rng.randint(2, 9), rng.randint(2, 9), rng.randint(1, 3)
    return Problem(
        id=f"pens-{number}",
        question=f"A shop has {boxes} boxes of {pens} pens and loses {lost} pens. How many are left?",
        answer=boxes * pens - lost,
        reference=f"n0 = {boxes}\nn1 = {pens}\nn2 = {lost}\nt0 = n0 * n1\nanswer = t0 - n2",
    )


def main(steps: int = 60) -> None:
    rng = random.Random(0)
    problems = [problem(number, rng) for number in range(60)]
    with tempfile.TemporaryDirectory() as folder:
        config = SelfSamplingConfig(
            output_dir=str(Path(folder, "run")),
            max_steps=steps,
            learning_rate=3e-3,
            warmup_steps=5,
            per_device_train_batch_size=16,
            sampling_start_step=steps // 2,  # the model starts from nothing, so let it learn to write first
            max_completion_length=60,
            report_to="none",
        )
        trainer = SelfSamplingTrainer("tiny", config, train_dataset=problems[:50])
        trainer.train()
        kept = [len(buffer) for buffer in trainer.buffers.values()]
        print(f"{sum(kept)} solutions kept for {len(kept)} problems")

        (draws,) = trainer.engine.complete([Request(problems[50], EMPTY, 5)], SamplingSettings(), seed=0)
        print(problems[50].question, "->", problems[50].answer)
        for draw in draws:
            print(f"{draw.count}x answer {trace(draw.text).answer}: {draw.text.strip()!r}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
