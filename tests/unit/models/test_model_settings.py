"""Settings about the model itself: what works with trees, what is refused in one line, what loads again."""

import os
from importlib.util import find_spec

import pytest
import torch
from training_cases import SMALL, ScriptedEngine, apples, small_trainer, write_inputs
from transformers import AutoModelForCausalLM

from partway.errors import ConfigError, ModelError
from partway.learning.layouts import TreeRows
from partway.models.loading import load_model
from partway.models.tiny import build_tiny_model
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from partway.training.starting_model import prepared_model

needs_peft = pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed")


def config(directory, **settings):
    return SelfSamplingConfig(**{**SMALL, "output_dir": str(directory), "max_steps": 1, **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"load_in_4bit": True, "load_in_8bit": True}, "load_in_4bit and load_in_8bit are both true"),
        (
            {"hub_strategy": "all_checkpoints"},
            "hub_strategy is all_checkpoints, but only final/ is uploaded",
        ),
    ],
)
def test_what_does_not_go_with_trees_is_refused_in_one_line(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message) as refused:
        config(tmp_path, **settings)
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(find_spec("liger_kernel") is not None, reason="liger-kernel is installed")
def test_a_kernel_package_that_is_missing_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"pip install liger-kernel, or set it to false"):
        config(tmp_path, use_liger_kernel=True)


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_weights_in_few_bits_need_bitsandbytes(tmp_path):
    write_inputs(tmp_path)
    with pytest.raises(ModelError, match=r"weights in 4 bits need the package bitsandbytes; pip install"):
        load_model(tmp_path / "model", bits=4)


def test_no_layer_may_repack_its_weights_when_it_is_evaluated(tmp_path, monkeypatch):
    """What bitsandbytes 0.50 repacks on a CPU gives no gradient to anything below it."""
    write_inputs(tmp_path)
    load = AutoModelForCausalLM.from_pretrained

    def load_with_flag(*names, **options):
        model, report = load(*names, **options)
        model.lm_head.support_avx512bf16_for_cpu = True
        return model, report

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", load_with_flag)
    assert load_model(tmp_path / "model").model.lm_head.support_avx512bf16_for_cpu is False


@needs_peft
@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed")
@pytest.mark.filterwarnings("ignore:MatMul8bitLt")
@pytest.mark.parametrize("bits", [4, 8])
def test_the_first_adapter_learns_through_weights_in_few_bits_after_an_evaluation(tmp_path, bits):
    problems = apples(2)
    build_tiny_model(problems, hidden_size=32, layers=2, directory=tmp_path / "model")
    settings = config(tmp_path / "run", use_peft=True, use_cpu=True, **{f"load_in_{bits}bit": True})
    model = prepared_model(str(tmp_path / "model"), None, settings, problems).model
    tokens = torch.arange(5, 25).unsqueeze(0)
    with torch.no_grad():
        model.eval()(input_ids=tokens)
    model.train()(input_ids=tokens, labels=tokens).loss.backward()
    gradients = {name: weights.grad for name, weights in model.named_parameters() if "lora_B" in name}
    assert any("layers.0" in name for name in gradients)
    for name, gradient in gradients.items():
        assert gradient is not None, name
        assert gradient.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("model", {"load_in_8bit": True}, "load_in_8bit is true but use_peft is false"),
        ("tiny", {"load_in_4bit": True, "use_peft": True}, "the tiny model has nothing to save"),
        ("tiny", {"attn_implementation": "magic"}, "attn_implementation is magic, which fails here"),
        (
            "tiny",
            {"attn_implementation": "flex_attention"},
            "flex_attention, which ends the process on a CPU",
        ),
    ],
)
def test_settings_that_the_model_cannot_have_are_refused(tmp_path, model, settings, message):
    if "use_peft" in settings:
        pytest.importorskip("peft")
    with pytest.raises(ConfigError, match=message):
        prepared_model(model, None, config(tmp_path, **settings), apples(2))


def losses(directory, **settings):
    trainer = small_trainer(directory, max_steps=2, eval_strategy="no", logging_steps=1, **settings)
    trainer.train()
    return [line["loss"] for line in trainer.run.metrics() if "loss" in line]


@pytest.mark.filterwarnings("ignore:.*use_reentrant.*")
def test_checkpointing_of_activations_changes_nothing_but_memory(tmp_path):
    plain = losses(tmp_path / "plain")
    assert losses(tmp_path / "saving", gradient_checkpointing=True) == pytest.approx(plain, rel=1e-5)


def test_eager_attention_learns_from_trees_in_rows(tmp_path):
    settings = config(tmp_path, attn_implementation="eager")
    trainer = SelfSamplingTrainer("tiny", settings, apples(4), engine=ScriptedEngine())
    assert isinstance(trainer.scorer.layout, TreeRows)


@needs_peft
def test_an_adapter_on_the_tiny_model_loads_again(tmp_path):
    settings = config(tmp_path / "run", use_peft=True, lora_r=2)
    trainer = SelfSamplingTrainer("tiny", settings, apples(4), engine=ScriptedEngine())
    trainer.train()
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        expected = trainer.model.eval()(ids).logits
        found = load_model(tmp_path / "run").model(ids).logits
    torch.testing.assert_close(found, expected)


@needs_peft
def test_an_adapter_on_a_relative_path_loads_again_from_elsewhere(tmp_path, monkeypatch):
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    settings = config(tmp_path / "run", use_peft=True, lora_r=2)
    trainer = SelfSamplingTrainer("model", settings, apples(4), engine=ScriptedEngine())
    trainer.train()
    monkeypatch.chdir(os.sep)
    assert load_model(tmp_path / "run").model.peft_config
    (tmp_path / "model").rename(tmp_path / "moved")
    with pytest.raises(
        ModelError, match=r"final|run: an adapter whose base model is .*/model: no such directory"
    ):
        load_model(tmp_path / "run")
