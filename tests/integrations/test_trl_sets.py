"""TRL trains a step from each set that `partway buffer --export` writes."""

import json

import pytest
from click.testing import CliRunner

from partway.cli import app
from partway.demo.storyproblems import generate_problems
from partway.models.loading import load_model
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

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
