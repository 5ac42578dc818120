"""Adapters: loaded on their base, trained through weights in few bits, found again from elsewhere."""

import json
import os
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import save_file
from sampling_cases import APPLES
from training_cases import SMALL, ScriptedEngine, apples, write_inputs

from partway.adapters.few_bits import keep_gradients
from partway.errors import ModelError
from partway.models.engine import SamplingSettings
from partway.models.loading import load_model
from partway.models.tiny import build_tiny_model
from partway.sample import Request
from partway.sampling.local_engine import LocalEngine
from partway.solution import EMPTY
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from partway.training.preparation import prepared_model

needs_peft = pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed")


def config(directory, **settings):
    return SelfSamplingConfig(**{**SMALL, "output_dir": str(directory), "max_steps": 1, **settings})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models") / "tiny"
    build_tiny_model([APPLES], hidden_size=32, layers=1, directory=directory)
    return directory


def edited(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def failure(name):
    with pytest.raises(ModelError) as caught:
        load_model(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.filterwarnings("ignore:Found missing adapter keys")
def test_an_adapter_is_loaded_upon_its_base(saved, tmp_path):
    peft = pytest.importorskip("peft")
    base = load_model(saved)
    adapter = peft.get_peft_model(
        base.model, peft.LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")
    )
    with torch.no_grad():
        for name, weights in adapter.named_parameters():
            if "lora_B" in name:
                weights.add_(1.0)
    adapter.save_pretrained(tmp_path / "adapter")
    loaded = load_model(tmp_path / "adapter")
    prompt = torch.tensor([base.codec.prompt(APPLES.question)], device=base.model.device)
    with torch.no_grad():
        logits = loaded.model(prompt).logits
        assert torch.allclose(logits, adapter(prompt).logits)
        assert not torch.allclose(logits, load_model(saved).model(prompt).logits)
    (draws,) = LocalEngine(loaded).complete([Request(APPLES, EMPTY, 3)], SamplingSettings(), 0)
    assert sum(draw.count for draw in draws) == 3
    said = (tmp_path / "adapter" / "adapter_config.json").read_text()
    for changes, message in (
        ({"base_model_name_or_path": None}, "does not name its base"),
        ({"base_model_name_or_path": str(tmp_path / "adapter")}, "recursion"),
    ):
        edited(tmp_path / "adapter" / "adapter_config.json", **changes)
        assert message in failure(tmp_path / "adapter")
        (tmp_path / "adapter" / "adapter_config.json").write_text(said)
    (tmp_path / "adapter" / "adapter_config.json").write_text("[1]")
    assert "expected names with values" in failure(tmp_path / "adapter")
    (tmp_path / "adapter" / "adapter_config.json").write_text(said)
    save_file({}, tmp_path / "adapter" / "adapter_model.safetensors")
    assert "weights of the adapter are missing" in failure(tmp_path / "adapter")


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_weights_in_few_bits_need_bitsandbytes(tmp_path):
    write_inputs(tmp_path)
    with pytest.raises(ModelError, match=r"weights in 4 bits need the package bitsandbytes; pip install"):
        load_model(tmp_path / "model", bits=4)


def test_no_layer_may_repack_its_weights_when_it_is_evaluated():
    """What bitsandbytes 0.50 repacks on a CPU gives no gradient to anything below it."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    model[0].support_avx512bf16_for_cpu = True
    keep_gradients(model)
    assert model[0].support_avx512bf16_for_cpu is False


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


@needs_peft
def test_an_adapter_on_the_tiny_model_loads_again(tmp_path):
    settings = config(tmp_path / "run", use_peft=True, lora_r=2)
    trainer = SelfSamplingTrainer("tiny", settings, apples(4), engine=ScriptedEngine())
    trainer.train()
    ids = torch.tensor([[5, 6, 7]], device=trainer.model.device)
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
