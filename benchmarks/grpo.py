"""A step of TRL's GRPO for `python -m benchmarks train`: as many problems, samples and tokens at most.

TRL is no dependency; `make test-integrations` installs it into an environment of its own.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from copy import deepcopy
from typing import Any

from transformers import PrinterCallback, TrainerCallback

from partway.rewards import trace_reward
from partway.training import SelfSamplingTrainer


class Watch(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """How long each step took, and how long drawing samples took of it."""

    def __init__(self, model: Any) -> None:
        self.begun = self.drawing = 0.0
        self.seconds: list[float] = []
        self.shares: list[float] = []
        self.generate, model.generate = model.generate, self.drawn  # the only way to see how long it takes

    def drawn(self, *args: Any, **settings: Any) -> Any:
        """What `generate` gives."""
        started = time.perf_counter()
        found = self.generate(*args, **settings)
        self.drawing += time.perf_counter() - started
        return found

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.begun, self.drawing = time.perf_counter(), 0.0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.seconds.append(time.perf_counter() - self.begun)
        self.shares.append(self.drawing / self.seconds[-1])


def seconds_per_step(trainer: SelfSamplingTrainer, steps: int) -> dict[str, Any]:
    """The median of steps on the trainer's batch with a copy of its model, or why there is none."""
    if trainer.args.samples_per_problem < 2:
        return {"refused": "it compares samples of a problem, so it needs at least 2 (--num-generations)"}
    try:
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as error:
        return {"refused": f"{error.name} is not installed; see make test-integrations"}
    problems, codec = trainer.batch, trainer.codec
    rows = {
        "prompt": [codec.question.text(problem.question) for problem in problems],
        "answer": [problem.answer for problem in problems],
        "solution": [problem.reference.text if problem.reference else None for problem in problems],
    }
    model = deepcopy(trainer.model)
    watch = Watch(model)
    with tempfile.TemporaryDirectory() as directory:
        settings = GRPOConfig(
            output_dir=directory,
            max_steps=steps + 1,  # one to warm up
            per_device_train_batch_size=len(problems) * trainer.args.samples_per_problem,
            num_generations=trainer.args.samples_per_problem,
            max_completion_length=trainer.args.max_completion_length,
            temperature=trainer.args.temperature,
            learning_rate=trainer.args.learning_rate,
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        )
        grpo = GRPOTrainer(
            model=model,
            reward_funcs=trace_reward,
            args=settings,
            train_dataset=Dataset.from_dict(rows),
            processing_class=codec.tokenizer,
            callbacks=[watch],
        )
        grpo.remove_callback(PrinterCallback)
        grpo.train()
    return {
        "seconds": statistics.median(watch.seconds[1:]),
        "share_drawing": statistics.median(watch.shares[1:]),
    }
