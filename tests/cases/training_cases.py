"""A run small enough for tests: sums of apples, a tiny GPT-Neo with dropout, and an engine with a script."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from transformers import GPTNeoConfig, GPTNeoForCausalLM, PreTrainedModel

from partway.models.engine import Engine, SamplingSettings
from partway.models.loading import LanguageModel
from partway.models.text import Codec
from partway.models.tiny import train_tokenizer
from partway.problem import Problem
from partway.problems import write_problems
from partway.sample import Request, Sample
from partway.sampling.local_engine import LocalEngine
from partway.solution import Solution
from partway.training import SelfSamplingTrainer
from partway.training.config import config_of

SMALL = {
    "preset": "paper",
    "max_steps": 8,
    "effective_batch_size": 4,
    "num_generations": 3,
    "learning_rate": 1e-3,
    "warmup_steps": 2,
    "logging_steps": 3,  # not at checkpoints, so that sums must survive them
    "eval_steps": 4,
    "save_steps": 4,
    "eval_samples": 2,
    "max_completion_length": 12,
    "save_total_limit": None,
    "disable_tqdm": True,
    "use_cpu": True,
}


def apples(count: int, seed: int = 0) -> list[Problem]:
    """Problems with one obvious solution and a few others."""
    rng = random.Random(seed)
    numbers = [[rng.randrange(2, 20) for _ in range(3)] for _ in range(count)]
    return [
        Problem(
            f"apples-{seed}-{index}",
            f"Tom has {a} apples, buys {b} more and eats {c}. How many are left?",
            a + b - c,
            obvious_solution(a, b, c),
        )
        for index, (a, b, c) in enumerate(numbers)
    ]


def obvious_solution(*numbers: object) -> str:
    """The reference of a problem of apples with these numbers."""
    a, b, c = numbers
    return f"n0 = {a}\nn1 = {b}\nn2 = {c}\nt0 = n0 + n1\nanswer = t0 - n2"


def tiny_gpt_neo(problems: Sequence[Problem], seed: int = 0, dropout: float = 0.1) -> LanguageModel:
    """The paper's family, a few thousand weights, with dropout."""
    tokenizer = train_tokenizer(problems)
    config = GPTNeoConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_layers=2,
        attention_types=[[["global", "local"], 1]],
        num_heads=2,
        window_size=64,
        max_position_embeddings=96,
        resid_dropout=dropout,
        embed_dropout=dropout,
        attention_dropout=dropout,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPTNeoForCausalLM(config)
    return LanguageModel(model, Codec.of(tokenizer), config.max_position_embeddings)


def write_inputs(folder: Path, **settings: object) -> None:
    """A tiny model, problems, and a `config.yaml` that names them."""
    problems = apples(8)
    language_model = tiny_gpt_neo(problems)
    language_model.model.save_pretrained(folder / "model")
    language_model.codec.tokenizer.save_pretrained(folder / "model")
    write_problems(folder / "train.jsonl", problems)
    write_problems(folder / "dev.jsonl", apples(2, seed=1))
    named = {"model_name_or_path": "model", "train_file": "train.jsonl", "eval_file": "dev.jsonl"}
    content = {key: value for key, value in SMALL.items() if key not in ("disable_tqdm", "use_cpu")}
    content |= {key: str(folder / name) for key, name in named.items()}
    (folder / "config.yaml").write_text(yaml.safe_dump(content | {"max_steps": 4} | settings))


class ScriptedEngine(Engine):
    """Continues like the reference, or nearly so, or not at all: every verdict comes up."""

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """A script has no weights."""

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """What is drawn depends on the seed and the problem only."""
        return [self._draws(request, random.Random(f"{seed}/{request.problem.id}")) for request in requests]

    def _draws(self, request: Request, rng: random.Random) -> list[Sample]:
        counts = Counter(self._completion(request, rng) for _ in range(request.count))
        return [
            request.sample(
                text,
                count,
                finished=text.endswith("\n"),
                tokens=range(1, 1 + len(text.split())),
                log_prob=-1.0,
            )
            for text, count in counts.items()
        ]

    def _completion(self, request: Request, rng: random.Random) -> str:
        problem = request.problem  # given without its reference, perhaps
        known = problem.reference or Solution.parse(obvious_solution(*re.findall(r"\d+", problem.question)))
        steps = list(known.steps)
        if rng.random() < 0.5:
            steps[3] = "t0 = n1 + n0"
        if rng.random() < 0.3:
            steps[4] = rng.choice(["answer = t0 + n2", "answer = 1 / 0", "answer = t0 -", "x = t0 - n2"])
        if rng.random() < 0.3:
            steps[:2] = steps[1::-1]
        if rng.random() < 0.2:
            steps[3:3] = ["t9 = 1"]
        if rng.random() < 0.1:
            steps[0] = "n0 ="
        text = "".join(f"{step}\n" for step in steps[len(request.prefix) :])
        return text[:-1] if rng.random() < 0.1 else text


@dataclass
class ScriptedExploring(Engine):
    """The script above for the problems to explore; others, those of evaluations, are put to the model."""

    explored: frozenset[str]
    model: LocalEngine
    script: ScriptedEngine = field(default_factory=ScriptedEngine)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """The answers of one of the two: no call mixes them."""
        engine = self.script if requests[0].problem.id in self.explored else self.model
        return engine.complete(requests, settings, seed)

    def update(self, weights: PreTrainedModel, version: int) -> None:
        self.model.update(weights, version)


class Call(NamedTuple):
    """What an engine was asked."""

    requests: Sequence[Request]
    settings: SamplingSettings
    seed: int


class WatchedEngine(ScriptedEngine):
    """The script for exploring and for evaluating, remembering what it was asked."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        self.calls.append(Call(requests, settings, seed))
        return super().complete(requests, settings, seed)


def watched_trainer(
    directory: Path,
    problems: Sequence[Problem] | None = None,
    *,
    kind: type[SelfSamplingTrainer] = SelfSamplingTrainer,
    **settings: Any,
) -> Any:
    """A trainer without dropout and with a watched engine, of six problems unless some are given."""
    problems = problems or apples(6)
    args = config_of({"output_dir": str(directory), **SMALL, **settings})
    model = tiny_gpt_neo(problems, dropout=0.0)
    return kind(model, args, problems, apples(3, seed=1), engine=WatchedEngine())


class ShardedTrainer(SelfSamplingTrainer):
    """FSDP2 on CPUs. Torch can do it; accelerate switches it on for other devices only, so this does."""

    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()
        state = AcceleratorState()
        for shared in (state._shared_state, PartialState._shared_state):
            shared["distributed_type"] = DistributedType.FSDP
        state.fsdp_plugin = FullyShardedDataParallelPlugin(
            fsdp_version=2,
            auto_wrap_policy="transformer_based_wrap",
            state_dict_type="FULL_STATE_DICT",
            reshard_after_forward=True,
            cpu_ram_efficient_loading=False,
        )
        self.is_fsdp_enabled = True


STRATEGIES = {"ddp": SelfSamplingTrainer, "fsdp2": ShardedTrainer}


def small_trainer(
    directory: Path, *, strategy: str = "ddp", dropout: float = 0.1, **settings: Any
) -> SelfSamplingTrainer:
    """A trainer of ten problems, which is no multiple of the batch, in `directory`; a script draws for it
    where the settings name no engine."""
    problems = apples(10)
    args = config_of({"output_dir": str(directory), **SMALL, **settings})
    model = tiny_gpt_neo(problems, dropout=dropout)
    scripted = ScriptedExploring(frozenset(problem.id for problem in problems), LocalEngine(model))
    engine = None if "engine" in settings else scripted
    return STRATEGIES[strategy](model, args, problems, apples(3, seed=1), engine=engine)
