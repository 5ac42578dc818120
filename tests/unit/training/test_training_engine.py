"""The parts a trainer is given: the engine that draws its samples, an adapter, an optimiser, more metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from training_cases import SMALL, ScriptedEngine, apples, tiny_gpt_neo
from transformers import PreTrainedModel

from partway.models.engine import SamplingSettings
from partway.models.loading import load_model
from partway.problem import Problem
from partway.sample import Request, Sample
from partway.sampling.local_engine import LocalEngine
from partway.solution import EMPTY, Solution
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")
QUICK = {"max_steps": 2, "eval_strategy": "no", "report_to": "none"}


class RecordingEngine(ScriptedEngine):
    """The script, and what it was told and asked."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []
        self.asked: list[str] = []

    def update(self, weights: PreTrainedModel, version: int) -> None:
        self.told.append((id(weights), version))

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        self.asked += [request.problem.id for request in requests]
        return super().complete(requests, settings, seed)


def config(directory: Path, **settings: Any) -> SelfSamplingConfig:
    return SelfSamplingConfig(**{**SMALL, **QUICK, "output_dir": str(directory), **settings})


def test_a_given_engine_draws_everything_and_is_told_of_the_weights_first(tmp_path: Path) -> None:
    engine, problems, dev = RecordingEngine(), apples(4), apples(2, seed=1)
    args = config(tmp_path / "run", eval_strategy="steps", eval_steps=2, save_steps=2)
    trainer = SelfSamplingTrainer(tiny_gpt_neo(problems), args, problems, dev, engine=engine)
    trainer.train()
    assert set(engine.asked) == {problem.id for problem in (*problems, *dev)}
    assert [version for _, version in engine.told] == [0, 1, 2]  # two steps and an evaluation
    assert {weights for weights, _ in engine.told} == {id(trainer.model)}


def test_the_local_engine_draws_with_the_weights_it_was_told_of() -> None:
    (problem,) = apples(1)
    one, other = tiny_gpt_neo([problem], seed=0), tiny_gpt_neo([problem], seed=1)
    requests, settings = [Request(problem, EMPTY, 5)], SamplingSettings(max_completion_length=8)
    engine = LocalEngine(one)
    before = engine.complete(requests, settings, 0)
    engine.update(one.model, 1)
    assert engine.complete(requests, settings, 0) == before
    engine.update(other.model, 2)
    assert engine.complete(requests, settings, 0) == LocalEngine(other).complete(requests, settings, 0)
    assert engine.complete(requests, settings, 0) != before


def test_the_default_engine_stops_at_the_configured_answer_variable(tmp_path: Path) -> None:
    steps = ("answer = 1", "result = answer + 1", "x = 2")
    problems = [Problem("p", "What is one and one?", 2, Solution(steps[:2]))]
    trainer = SelfSamplingTrainer(
        tiny_gpt_neo([replace(problems[0], reference=Solution(steps))]),
        config(tmp_path, language_args={"answer_variable": "result"}, max_completion_length=40),
        problems,
    )
    text = "".join(f"{step}\n" for step in steps)
    make_certain(trainer.model, trainer.codec.prompt(problems[0].question) + trainer.codec.encode(text))
    [[draw]] = trainer.engine.complete([Request(problems[0], EMPTY, 3)], trainer.args.sampling, 0)
    assert draw.completion.split("\n")[:2] == list(steps[:2])
    assert draw.finished
    assert "x" not in draw.completion


def make_certain(model: PreTrainedModel, tokens: Sequence[int]) -> None:
    """Let the model say these tokens, and nothing else, by their position alone."""

    def forward(input_ids: torch.Tensor, position_ids: torch.Tensor | None = None, **inputs: Any) -> Any:
        output = original(input_ids=input_ids, position_ids=position_ids, **inputs)
        if position_ids is None:
            return output  # a prompt, of which nothing is drawn
        table = torch.tensor([*tokens[1:], tokens[-1]], device=position_ids.device)
        following = table[position_ids.clamp(max=len(tokens) - 1)]
        output.logits = torch.nn.functional.one_hot(following, output.logits.shape[-1]) * 1000.0
        return output

    original = model.forward
    model.forward = forward  # type: ignore[method-assign]


def test_an_evaluation_has_the_metrics_a_user_computes_of_it(tmp_path: Path) -> None:
    problems = apples(4)
    trainer = SelfSamplingTrainer(
        tiny_gpt_neo(problems),
        config(tmp_path, eval_strategy="steps"),
        problems,
        apples(2, seed=1),
        engine=ScriptedEngine(),
        compute_metrics=lambda evaluation: {"problems": len(evaluation.results)},
    )
    assert trainer.evaluate()["eval_problems"] == 2


def test_an_optimiser_of_ones_own_is_used(tmp_path: Path) -> None:
    problems = apples(4)
    language_model = tiny_gpt_neo(problems)
    sgd = torch.optim.SGD(language_model.model.parameters(), lr=0.0)
    before = [weight.clone() for weight in language_model.model.parameters()]
    trainer = SelfSamplingTrainer(
        language_model, config(tmp_path), problems, engine=ScriptedEngine(), optimizers=(sgd, None)
    )
    trainer.train()
    assert all(
        torch.equal(weight.cpu(), old.cpu())
        for weight, old in zip(trainer.model.parameters(), before, strict=True)
    )


@pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed")
def test_an_adapter_of_ones_own_is_trained(tmp_path: Path) -> None:
    from peft import LoraConfig

    problems = apples(4)
    adapter = LoraConfig(r=3, target_modules=["q_proj"], task_type="CAUSAL_LM")
    trainer = SelfSamplingTrainer(
        tiny_gpt_neo(problems), config(tmp_path), problems, engine=ScriptedEngine(), peft_config=adapter
    )
    learning = {
        name: weight.shape for name, weight in trainer.model.named_parameters() if weight.requires_grad
    }
    assert learning
    assert all("q_proj.lora_" in name and 3 in shape for name, shape in learning.items())


def test_a_saved_model_is_opened_by_its_directory(tmp_path: Path) -> None:
    problems = apples(2)
    language_model = tiny_gpt_neo(problems)
    language_model.model.save_pretrained(tmp_path)
    language_model.codec.tokenizer.save_pretrained(tmp_path)
    requests, settings = [Request(problems[0], EMPTY, 3)], SamplingSettings(max_completion_length=8)
    expected = LocalEngine(language_model).complete(requests, settings, 0)
    saved = LocalEngine(load_model(tmp_path, device="cpu"))
    assert saved.complete(requests, settings, 0) == expected
