"""TRL trains a step from each set that `partway buffer` writes, and reads the tokens that our model read."""

import json

import pytest
import torch
from chat_templates import chat_run
from click.testing import CliRunner
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from partway.cli import app
from partway.demo.storyproblems import generate_problems
from partway.models.loading import load_model
from partway.solution import Solution
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from runreports.wording import program_in

trl = pytest.importorskip("trl", reason="TRL is not installed; make test-integrations")

ONE_STEP = {
    "max_steps": 1,
    "per_device_train_batch_size": 2,
    "use_cpu": True,
    "bf16": False,
    "report_to": "none",
    "save_strategy": "no",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the built-in model that has samples of every kind."""
    directory = tmp_path_factory.mktemp("sets") / "run"
    config = SelfSamplingConfig(
        output_dir=str(directory),
        max_steps=4,
        per_device_train_batch_size=8,
        num_generations=8,
        max_completion_length=96,
        eval_strategy="no",
        load_best_model_at_end=False,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    SelfSamplingTrainer(
        "tiny-storyproblems", config, generate_problems(16, seed=5, difficulty="easy")
    ).train()
    return directory


def exported(run, tmp_path, trainer: str):
    """The set as `datasets` loads it from the file alone."""
    from datasets import load_dataset

    file = tmp_path / f"{trainer}.jsonl"
    words = (
        ["buffer", "export", str(run), str(file), "--kind", "fully_correct", "--json"]
        if trainer == "sft"
        else ["buffer", "preferences", str(run), str(file), "--for", trainer, "--json"]
    )
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert sum(value for value in json.loads(result.output).values() if isinstance(value, int)) > 2
    return load_dataset("json", data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("trainer", "kind", "settings"),
    [("sft", "SFT", {}), ("dpo", "DPO", {}), ("kto", "KTO", {})],
)
def test_one_step_is_trained_from_the_set(run, tmp_path, trainer, kind, settings):
    language_model = load_model("tiny-storyproblems")
    rows = exported(run, tmp_path, trainer)
    made = getattr(trl, f"{kind}Trainer")(
        model=language_model.model,
        args=getattr(trl, f"{kind}Config")(output_dir=str(tmp_path), **ONE_STEP, **settings),
        train_dataset=rows,
        processing_class=language_model.codec.tokenizer,
    )
    made.train()
    assert made.state.global_step == 1


def made_by_trl(kind: str, run, codec, tmp_path, rows):
    """The rows as one of TRL's trainers has tokenised them."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(codec.tokenizer), **sizes)).save_pretrained(
        tmp_path / "model"
    )
    trainer = getattr(trl, f"{kind}Trainer")(
        model=LlamaForCausalLM.from_pretrained(tmp_path / "model"),
        args=getattr(trl, f"{kind}Config")(output_dir=str(tmp_path), **ONE_STEP),
        train_dataset=rows,
        processing_class=AutoTokenizer.from_pretrained(run.final),
    )
    return trainer.train_dataset


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("template", ["SmolLM2", "Qwen3", "Llama 3"])
def test_trl_makes_the_tokens_of_a_chat_run_that_its_model_read_and_learned(tmp_path, template):
    run, codec = chat_run(tmp_path, template)
    questions = {problem.id: problem.question for problem in run.problems()}
    rows = exported(run.directory, tmp_path, "sft")
    found = made_by_trl("SFT", run, codec, tmp_path, rows)
    for row, tokens in zip(rows, found, strict=True):
        steps = Solution(tuple(program_in(row["completion"]).splitlines()))
        prompt, target = codec.prompt(questions[row["problem_id"]]), codec.target(steps, finished=True)
        both = [*prompt, *target]
        assert tokens["input_ids"][: len(both)] == both
        assert tokens["labels"][: len(both)] == [-100] * len(prompt) + target, (
            "the answer is learned, only it"
        )
        assert len(tokens["input_ids"]) <= len(both) + 1, "a template may end a turn with a newline"


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("trainer", "sides"), [("dpo", ("chosen", "rejected")), ("kto", ("completion",))])
@pytest.mark.parametrize("template", ["SmolLM2", "Llama 3"])
def test_trl_makes_the_tokens_of_preferences_that_the_model_read(tmp_path, template, trainer, sides):
    run, codec = chat_run(tmp_path, template)
    questions = {problem.id: problem.question for problem in run.problems()}
    rows = exported(run.directory, tmp_path, trainer)
    found = made_by_trl(trainer.upper(), run, codec, tmp_path, rows)
    for row, tokens in zip(rows, found, strict=True):
        prompt = codec.prompt(questions[row["problem_id"]])
        first = Solution(tuple(row["prompt"].partition("```python\n")[2].splitlines()))
        assert tokens["prompt_ids"] == [*prompt, *codec.steps(first)]
        for side in sides:
            rest = Solution(tuple(program_in(f"```\n{row[side]}").splitlines()))
            written = codec.target(rest, finished=True)
            assert tokens[f"{side}_ids"][: len(written)] == written
            assert len(tokens[f"{side}_ids"]) <= len(written) + 1, "TRL adds an end of text"
