"""The final model for others: its card says which weights these are, and it is uploaded, or that is said."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from huggingface_hub import HfApi
from training_cases import SMALL, ScriptedEngine, apples, small_trainer
from transformers import AutoModelForCausalLM, Trainer

from partway import registry
from partway.cli import app
from partway.errors import ConfigError, RunError
from partway.evaluation import Evaluation
from partway.models.loading import load_model
from partway.models.tiny import build_tiny_model
from partway.tracking.display import describe
from partway.tracking.publishing import model_card
from partway.training import SelfSamplingConfig, SelfSamplingTrainer


def test_card_and_last_line_name_the_step_of_the_final_model(tmp_path, monkeypatch: pytest.MonkeyPatch):
    trainer = small_trainer(tmp_path / "run")

    def scalars(self, prefix):
        return {"eval_pass@1": 0.5, "eval_pass@2": {4: 0.7, 8: 0.6}[trainer.state.global_step]}

    monkeypatch.setattr(Evaluation, "scalars", scalars)
    trainer.train()
    assert describe(trainer.run.metrics()[-1]) == "finished; final/ is step 4"
    card = (trainer.run.final / "README.md").read_text()
    assert "These are the weights of step 4." in card
    assert "3 problems, at step 4:" in card
    assert "objective `mle_aug`" in card


def test_a_card_has_no_evaluation_of_other_weights(tmp_path):
    trainer = small_trainer(tmp_path / "run", max_steps=4)
    trainer.train()
    assert list(trainer.run.evaluations()) == [4]
    assert "## Evaluation" in model_card(trainer.args, trainer.run, 4)
    assert "## Evaluation" not in model_card(trainer.args, trainer.run, 3)


def trained(model: str, directory: Path, **settings) -> SelfSamplingTrainer:
    named = {"model_name_or_path": model, "output_dir": str(directory), "max_steps": 1}
    config = SelfSamplingConfig(**{**SMALL, **named, **settings})
    trainer = SelfSamplingTrainer(model, config, apples(4), engine=ScriptedEngine())
    trainer.train()
    return trainer


def logits(model) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(torch.tensor([[5, 6, 7]], device=model.device)).logits.cpu()


@pytest.mark.parametrize("use_peft", [False, True])
def test_the_lines_of_a_card_load_the_model_and_a_merged_one_needs_no_base(tmp_path, use_peft):
    if use_peft and find_spec("peft") is None:
        pytest.skip("peft is not installed")
    trainer = trained("tiny", tmp_path / "run", use_peft=use_peft)
    card = (trainer.run.final / "README.md").read_text()
    assert f"library_name: {'peft' if use_peft else 'transformers'}" in card
    [lines] = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    names: dict[str, object] = {}
    exec(lines, names)
    torch.testing.assert_close(logits(names["model"]), logits(trainer.model))
    assert names["tokenizer"].get_vocab() == trainer.processing_class.get_vocab()
    assert (trainer.run.final / "generation_config.json").is_file(), "where answers end"

    words = ["export", str(trainer.run.directory), "--merged", str(tmp_path / "whole")]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.stdout.strip() == str(tmp_path / "whole")
    trainer.run.directory.rename(tmp_path / "moved")
    whole = AutoModelForCausalLM.from_pretrained(tmp_path / "whole")
    torch.testing.assert_close(logits(whole), logits(trainer.model))
    assert not hasattr(whole, "peft_config")
    assert CliRunner().invoke(app, words).exit_code == 1  # nothing is overwritten


def test_an_adapter_on_a_model_of_ours_names_its_directory_and_is_found_on_another_machine(
    tmp_path, monkeypatch
):
    pytest.importorskip("peft")
    build_tiny_model(apples(4), hidden_size=32, layers=2, directory=tmp_path / "here")
    where = tmp_path / "here"

    class Unpacked:
        def load(self):
            return lambda: where

    parts = registry.parts
    monkeypatch.setattr(
        registry, "parts", lambda kind: {"small": Unpacked()} if kind == "models" else parts(kind)
    )
    trainer = trained("small", tmp_path / "run", use_peft=True)
    said = json.loads((trainer.run.final / "adapter_config.json").read_text())
    assert Path(said["base_model_name_or_path"]) == where
    assert "base_model:" not in (trainer.run.final / "README.md").read_text()
    where = where.rename(tmp_path / "there")
    torch.testing.assert_close(logits(load_model(trainer.run.directory).model), logits(trainer.model))


def hub_trainer(directory, monkeypatch, upload):
    """A trainer whose repository is there already, and a Hub that is a function."""
    monkeypatch.setattr(
        Trainer, "init_hf_repo", lambda self, token=None: setattr(self, "hub_model_id", "me/it")
    )
    monkeypatch.setattr(HfApi, "upload_folder", upload)
    return small_trainer(directory, max_steps=1, eval_strategy="no", push_to_hub=True, hub_token="secret")


def test_the_final_model_is_uploaded_and_nothing_else(tmp_path, monkeypatch):
    uploads = []

    def upload(self, *, folder_path, **options):
        uploads.append((sorted(path.name for path in folder_path.iterdir()), options))

    hub_trainer(tmp_path / "run", monkeypatch, upload).train()
    ((names, options),) = uploads
    assert {"README.md", "model.safetensors", "tokenizer.json"} <= set(names)
    assert (options["repo_id"], options["token"], options["revision"]) == ("me/it", "secret", None)


def test_an_upload_that_fails_leaves_the_model_and_says_how_to_try_again(tmp_path, monkeypatch):
    def upload(self, **options):
        raise OSError("no route to host\nand more")

    trainer = hub_trainer(tmp_path / "run", monkeypatch, upload)
    with pytest.raises(
        RunError, match=r"could not be uploaded \(no route to host\); try again with: hf upload me/it"
    ):
        trainer.train()
    assert trainer.run.is_finished


def test_a_hub_that_cannot_be_reached_is_no_bug(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match=r"push_to_hub is true, but the Hub cannot be used \(.*\); log in"):
        small_trainer(tmp_path / "run", push_to_hub=True)
