"""Every experiment of the paper has a file that loads and trains, with a tiny model of the same family."""

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner

from partway.cli import app
from partway.config import checked, read_settings
from partway.datasets import write_problems

CONFIGS = Path(__file__).parent.parent.parent / "configs"
SHARED = {"base", "gsm8k", "mathqa", "mathqa_filtered", "gptneo125m", "gptneo2.7b"}
CELLS = sorted(path for path in (CONFIGS / "paper").glob("*.yaml") if path.stem not in SHARED)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory) -> dict[str, str]:
    """Settings that replace the model by a tiny GPT-Neo and the data by a few problems."""
    from training_cases import apples, tiny_gpt_neo

    folder = tmp_path_factory.mktemp("stand_in")
    problems = apples(6)
    language_model = tiny_gpt_neo(problems)
    language_model.model.save_pretrained(folder / "model")
    language_model.codec.tokenizer.save_pretrained(folder / "model")
    write_problems(folder / "problems.jsonl", problems)
    file = str(folder / "problems.jsonl")
    settings = {"model_name_or_path": str(folder / "model"), "train_file": file, "eval_file": file}
    return settings | {"fp16": "false", "max_completion_length": "8"}


def generator():
    spec = importlib.util.spec_from_file_location("generate", CONFIGS / "paper" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_those_the_script_writes():
    generate = generator()
    written = {f"{'_'.join(cell)}.yaml": generate.content(*cell) for cell in generate.cells()}
    assert {path.name: path.read_text() for path in CELLS} == written
    assert len(written) == 22


@pytest.mark.parametrize("path", CELLS, ids=lambda path: path.stem)
def test_a_paper_config_trains_a_model_of_the_family(path, stand_in):
    pairs = [word for key, value in stand_in.items() for word in (f"--{key}", value)]
    result = CliRunner().invoke(
        app, ["--quiet", "train", str(path), "--dry-run", *pairs], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    assert "6 problems, 32 per step" in result.output
    assert ("0 samples drawn" in result.output) == path.stem.endswith("_mle")


def test_the_settings_are_those_of_the_table_of_hyperparameters():
    from partway.training import SelfSamplingConfig

    for path in CELLS:
        settings = checked(read_settings(path), SelfSamplingConfig, {"fp16": "false"})
        config = SelfSamplingConfig(**settings)
        is_gsm = path.stem.startswith("gsm8k")
        assert config.max_steps == (25_000 if is_gsm else 50_000)
        assert config.evaluation.samples == (100 if is_gsm else 80)
        assert (config.learning_rate, config.weight_decay, config.warmup_steps) == (1e-4, 0.1, 100)
        assert (config.adam_beta1, config.adam_beta2, config.adam_epsilon) == (0.9, 0.999, 1e-8)
        assert (config.problems_per_step, config.max_grad_norm) == (32, 1.0)
        assert (config.num_generations, config.temperature, config.mml_beta) == (1, 0.8, 0.25)
