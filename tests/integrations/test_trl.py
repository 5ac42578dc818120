"""TRL itself calls the trace reward; `make test-integrations` installs it in an environment of its own."""

import pytest

from partway.demo.storyproblems import generate_problems
from partway.models.loading import load_model
from partway.rewards import trace_reward, trace_reward_async

trl = pytest.importorskip("trl", reason="TRL is not installed; make test-integrations")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("reward", [trace_reward, trace_reward_async])
def test_two_steps_of_grpo_learn_from_trace_credit(tmp_path, reward):
    from datasets import Dataset

    problems = generate_problems(4, seed=0)
    language_model = load_model("tiny-storyproblems")
    rows = {
        "prompt": [language_model.codec.question.text(problem.question) for problem in problems],
        "answer": [problem.answer for problem in problems],
        "solution": [problem.reference.text for problem in problems],
    }
    settings = trl.GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=8,
        num_generations=8,
        max_completion_length=48,
        logging_steps=1,
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
    )
    trainer = trl.GRPOTrainer(
        model=language_model.model,
        reward_funcs=reward,
        args=settings,
        train_dataset=Dataset.from_dict(rows),
        processing_class=language_model.codec.tokenizer,
    )
    trainer.train()
    name = f"rewards/{reward.__name__}/mean"
    logged = [line for line in trainer.state.log_history if name in line]
    assert len(logged) == 2
    assert max(line[name] for line in logged) > 0
