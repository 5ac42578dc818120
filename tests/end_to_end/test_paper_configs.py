"""Every experiment of the paper has a file: the paper's settings, and a model of the family takes a step."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from training_cases import apples, tiny_gpt_neo

from partway.cli.config_files import read_settings
from partway.models.loading import LanguageModel
from partway.models.tiny import build_tiny_model
from partway.objectives import objective
from partway.problem import Problem
from partway.settings import checked
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from partway.training.config import PRESETS

CONFIGS = Path(__file__).parent.parent.parent / "configs"
SHARED = {"base", "gsm8k", "mathqa", "mathqa_filtered", "gptneo125m", "gptneo2.7b"}
FILES = sorted(path for path in (CONFIGS / "paper").glob("*.yaml") if path.stem not in SHARED)

# The paper's appendix, "Experiment Setting Details": the table of hyperparameters,
EVERYWHERE: dict[str, Any] = {
    "learning_rate": 1e-4,
    "optim": "adamw_torch",
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "weight_decay": 0.1,
    "lr_scheduler_type": "linear",
    "warmup_steps": 100,
    "effective_batch_size": 32,
    "max_grad_norm": 1.0,
}
# its paragraph on self-sampling: one solution for each task of the batch, at the temperature of inference,
EVERYWHERE |= {"num_generations": 1, "temperature": 0.8, "top_p": 1.0, "top_k": 0}
# its paragraph on pass@k: n samples at 0.8, one at 0.2 for pass@1, by which section 4.1 takes the checkpoint,
EVERYWHERE |= {"eval_temperature": 0.8, "eval_pass1_samples": 1, "eval_pass1_temperature": 0.2}
EVERYWHERE |= {
    "metric_for_best_model": "eval_pass@1",
    "load_best_model_at_end": True,
    "eval_strategy": "steps",
}
# and section 3: losses are sums over the buffer, states are compared exactly, no solution is longer than y*.
EVERYWHERE |= {"loss_normalization": "sum", "language_args": None, "length_tolerance": 0}
EVERYWHERE |= {"dedup": "ast", "dead_ends": "keep"}

DATA = {
    "gsm8k": {
        "max_steps": 25_000,
        "eval_samples": 100,
        "eval_k": [1, 5, 10, 20, 50, 100],
        "train_file": "data/gsm5.5k/train.jsonl",
        "eval_file": "data/gsm5.5k/dev.jsonl",
    },
    "mathqa": {
        "max_steps": 50_000,
        "eval_samples": 80,
        "eval_k": [1, 5, 10, 20, 50, 80],
        "train_file": "data/mathqa/train.jsonl",
        "eval_file": "data/mathqa/dev.jsonl",
    },
}
DATA["mathqa_filtered"] = DATA["mathqa"] | {
    "train_file": "data/mathqa_filtered/train.jsonl",
    "eval_file": "data/mathqa_filtered/dev.jsonl",
}
EPOCHS = {"gsm8k": (5_500, 145), "mathqa": (19_209, 83), "mathqa_filtered": (6_786, 235)}  # on self-sampling

MODELS = {
    "gptneo125m": {"model_name_or_path": "EleutherAI/gpt-neo-125m", "fp16": False, "bf16": False},
    "gptneo2.7b": {"model_name_or_path": "EleutherAI/gpt-neo-2.7B", "fp16": True, "bf16": False},
}
METHODS = {  # Table 1, and the strategies of figure 4
    "mle": {"self_sampling": "none", "objective": "mle"},
    "fcs": {"self_sampling": "fcs", "objective": "mle_aug"},
    "fcs_mml": {"self_sampling": "fcs", "objective": "mml"},
    "fcs_beta_mml": {"self_sampling": "fcs", "objective": "beta_mml"},
    "fcs_pcs": {"self_sampling": "fcs+pcs", "objective": "mle_aug"},
    "fcs_pcs_mml": {"self_sampling": "fcs+pcs", "objective": "mml"},
    "fcs_pcs_beta_mml": {"self_sampling": "fcs+pcs", "objective": "beta_mml"},
}
# What the paper does not say or what changes nothing that is learned; every other key has its default.
OURS = {
    "output_dir",
    "max_completion_length",
    "seed",
    "eval_steps",
    "save_steps",
    "save_total_limit",
    "logging_steps",
}
OURS |= {"tokens_per_pass", "gradient_checkpointing"}


def parts(path: Path) -> tuple[str, str, str, float]:
    """Data, model, method and beta of a file, from its name."""
    data, model, rest = path.stem.partition("_gptneo")[0], *path.stem.partition("_gptneo")[2].split("_", 1)
    method = next(name for name in sorted(METHODS, key=len, reverse=True) if rest.startswith(name))
    return data, f"gptneo{model}", method, float(rest.removeprefix(method).lstrip("_") or 0.25)


def settings_of(path: Path) -> dict[str, Any]:
    return checked(read_settings(path), SelfSamplingConfig)


def test_the_files_are_those_the_script_writes():
    spec = importlib.util.spec_from_file_location("generate", CONFIGS / "paper" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert {path.name: path.read_text() for path in FILES} == generate.files()


def test_every_experiment_has_its_file():
    found = [parts(path) for path in FILES]
    assert len(found) == len(set(found)) == 28
    for data in DATA:
        for model in MODELS:
            assert {("mle", 0.25), ("fcs", 0.25), ("fcs_pcs", 0.25)} <= {
                cell[2:] for cell in found if cell[:2] == (data, model)
            }
    losses = {cell[2:] for cell in found if cell[:2] == ("gsm8k", "gptneo125m")}
    searched = {
        (method, beta) for method in ("fcs_beta_mml", "fcs_pcs_beta_mml") for beta in (0.1, 0.25, 0.5, 0.9)
    }
    assert losses == {(method, 0.25) for method in METHODS} | searched


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_settings_are_those_of_the_paper(path):
    data, model, method, beta = parts(path)
    paper = EVERYWHERE | DATA[data] | MODELS[model] | METHODS[method]
    settings = settings_of(path)
    parameters = {"beta": beta} if paper["objective"] == "beta_mml" else {}
    assert objective(settings["objective"], settings.pop("objective_args", {})) == objective(
        paper["objective"], parameters
    )
    defaults = {name: f.default for name, f in SelfSamplingConfig.__dataclass_fields__.items()}
    defaults |= PRESETS[settings.pop("preset")]
    assert {key: settings.get(key, defaults[key]) for key in paper} == paper
    others = {key for key, value in settings.items() if value != defaults[key] and key not in paper}
    assert others <= OURS
    assert settings["output_dir"] == f"runs/{path.stem}"


@pytest.mark.parametrize("data", DATA)
def test_the_steps_make_as_many_epochs_as_the_paper_says(data):
    problems, epochs = EPOCHS[data]
    assert DATA[data]["max_steps"] * 32 // problems == epochs


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return apples(6)


@pytest.fixture(scope="module")
def language_model(problems) -> LanguageModel:
    """A random GPT-Neo that all files take their step with."""
    return tiny_gpt_neo(problems)


# One file per method, one per data set and model: the others differ from these in numbers only.
STEPS = {parts(path)[2]: path for path in FILES} | {parts(path)[:2]: path for path in FILES}


@pytest.mark.parametrize("path", sorted(set(STEPS.values())), ids=lambda path: path.stem)
def test_a_model_of_the_family_takes_a_step(path, problems, language_model, tmp_path):
    small = {"output_dir": str(tmp_path / "run"), "fp16": False, "max_steps": 1, "max_completion_length": 8}
    small |= {
        "eval_strategy": "no",
        "save_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": True,
        "logging_steps": 1,
    }
    trainer = SelfSamplingTrainer(language_model, SelfSamplingConfig(**settings_of(path) | small), problems)
    trainer.train()
    first, last = trainer.run.metrics()
    assert first["samples/drawn"] == (0 if path.stem.endswith("_mle") else len(problems))
    assert last["finished"]


MODERN = sorted((CONFIGS / "modern").glob("gsm8k_*.yaml"))


@pytest.mark.parametrize("path", MODERN, ids=lambda path: path.stem)
def test_configurations_for_todays_models_take_a_step_with_a_tiny_one(path, problems, tmp_path):
    small = {"output_dir": str(tmp_path / "run"), "bf16": False, "max_steps": 1, "max_completion_length": 8}
    small |= {"eval_strategy": "no", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
    settings = settings_of(path) | small | {"logging_steps": 1, "effective_batch_size": 6}
    model = build_tiny_model(problems, hidden_size=16, layers=1, heads=2)
    trainer = SelfSamplingTrainer(model, SelfSamplingConfig(**settings), problems)
    trainer.train()
    assert trainer.run.metrics()[0]["samples/drawn"] == 4 * len(problems)


def test_todays_models_fit_a_card_of_24_gigabytes(monkeypatch):
    monkeypatch.syspath_prepend(str(CONFIGS.parent / "docs"))
    sizing = importlib.import_module("sizing")
    for path in MODERN:
        settings = read_settings(path)
        assert sizing.memory(settings, sizing.SIZES[settings["model_name_or_path"]]) < 24
    assert len(MODERN) == 3
