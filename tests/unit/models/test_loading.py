"""Loading models by name: what works, and one clear line for what does not."""

import importlib.util
import json
import shutil

import pytest
import torch
from safetensors import safe_open
from sampling_cases import APPLES
from transformers import AutoTokenizer, RwkvConfig, RwkvForCausalLM

from partway.errors import ModelError
from partway.models import loading
from partway.models.engine import SamplingSettings
from partway.models.loading import LanguageModel, load_model, model_directory
from partway.models.tiny import build_tiny_model
from partway.runs.checkpoints import seal
from partway.sample import Request
from partway.sampling.local_engine import LocalEngine
from partway.solution import EMPTY

PICKLE = b"\x80\x04cos\nsystem\n(S'touch ran'\ntR."  # runs a command when it is read


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models") / "tiny"
    build_tiny_model([APPLES], hidden_size=32, layers=1, directory=directory)
    return directory


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def edited(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def failure(name):
    with pytest.raises(ModelError) as caught:
        load_model(name)
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert "\n" not in message
    return message


def test_names_that_cannot_be_models_fail_at_once(tmp_path):
    assert "no such directory" in failure("./nothing")
    assert "no such directory" in failure("models/of/mine")
    assert "no model here (config.json is missing)" in failure(tmp_path)
    (tmp_path / "weights.bin").touch()
    assert "is a file" in failure(tmp_path / "weights.bin")


def test_a_name_that_is_not_on_the_hub_fails_without_trying_many_times(monkeypatch):
    calls = []

    class Offline:
        def model_info(self, name, timeout):
            calls.append(name)
            raise ConnectionError("the Hub cannot be reached")

    monkeypatch.setattr(loading, "HfApi", Offline)
    message = failure("nobody/nothing")
    assert "no connection to the Hub (the Hub cannot be reached); check the name" in message
    assert calls == ["nobody/nothing"]
    assert "did you mean 'tiny-storyproblems'?" in failure("tiny-storyproblem")
    assert "a trained one is tiny-storyproblems" in failure("tiny")


def test_a_name_that_the_hub_does_not_know_is_told_from_no_connection(monkeypatch):
    class Unknown:
        def model_info(self, name, timeout):
            error = OSError("404")
            error.response = object()
            raise error

    monkeypatch.setattr(loading, "HfApi", Unknown)
    assert "not found on the Hub (404)" in failure("nobody/nothing")


def test_broken_directories_are_told_apart(copy):
    (copy / "tokenizer.json").rename(copy / "tokenizer.away")
    assert "tokenizer" in failure(copy)
    (copy / "tokenizer.away").rename(copy / "tokenizer.json")
    edited(copy / "config.json", num_hidden_layers=2)
    assert "weights are missing" in failure(copy)
    edited(copy / "config.json", num_hidden_layers=1, vocab_size=100)
    failure(copy)
    (copy / "model.safetensors").write_bytes(b"no tensors here at all")
    failure(copy)
    (copy / "model.safetensors").unlink()
    assert "model.safetensors" in failure(copy)
    edited(copy / "config.json", model_type="t5")
    assert "T5Config" in failure(copy)
    (copy / "config.json").write_text("{")
    assert "JSON" in failure(copy)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json"])
@pytest.mark.parametrize("content", ["[1]", "null", "{"], ids=["list", "null", "half"])
def test_a_file_of_another_kind_is_one_line(copy, name, content):
    (copy / name).write_text(content)
    assert len(failure(copy)) < 500


def test_pickled_weights_are_refused_unread(copy):
    (copy / "model.safetensors").unlink()
    (copy / "pytorch_model.bin").write_bytes(PICKLE)
    assert "its weights are pickled (pytorch_model.bin), and reading a pickle can run any code" in failure(
        copy
    )
    shutil.copy(copy / "config.json", copy / "adapter_config.json")
    (copy / "pytorch_model.bin").rename(copy / "adapter_model.bin")
    if importlib.util.find_spec("peft"):
        assert "its weights are pickled (adapter_model.bin)" in failure(copy)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attn_implementation": "some/kernel"}, "attn_implementation 'some/kernel', which is code"),
        ({"vocab_size": -5}, ""),
        ({"hidden_size": "large"}, "hidden_size"),
        ({"num_attention_heads": 0}, ""),
    ],
    ids=str,
)
def test_a_config_that_no_model_has_is_one_line(copy, changes, message):
    edited(copy / "config.json", **changes)
    assert message in failure(copy)


def test_a_part_of_the_weights_that_is_missing_is_one_line(copy):
    (copy / "model.safetensors").rename(copy / "part.safetensors")
    with safe_open(copy / "part.safetensors", "pt") as weights:
        names = list(weights.keys())
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "part.safetensors")}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    load_model(copy)
    (copy / "part.safetensors").unlink()
    assert "part.safetensors" in failure(copy)


def test_weights_that_were_half_copied_are_one_line(copy):
    whole = (copy / "model.safetensors").read_bytes()
    for content in (whole[:-100], whole[:20], b"", b"PK\x03\x04" + bytes(1000)):
        (copy / "model.safetensors").write_bytes(content)
        assert "header" in failure(copy)


@pytest.mark.parametrize("ends", [["x"], {"a": 1}, 10**30, [[5]], -5, 400])
def test_ends_that_are_no_tokens_of_the_model_are_refused(copy, ends):
    edited(copy / "generation_config.json", eos_token_id=ends)
    assert "eos_token_id" in failure(copy)


def test_code_beside_a_model_is_not_run(copy, tmp_path):
    for name in ("evil.py", "modeling_llama.py", "tokenizers.py", "custom_generate/generate.py"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass")
    (copy / "training_args.bin").write_bytes(PICKLE)
    (copy / "pytorch_model.bin").write_bytes(PICKLE)
    assert load_model(copy).context_length == 512
    evil = {
        "AutoConfig": "evil.Evil",
        "AutoModelForCausalLM": "evil.Evil",
        "AutoTokenizer": ["evil.Evil"] * 2,
    }
    for name in ("config.json", "tokenizer_config.json"):
        edited(copy / name, auto_map=evil, model_type="evil", tokenizer_class="Evil")
    assert "custom code" in failure(copy)
    assert not (tmp_path / "ran").exists()


ROLES = "{% for m in messages %}{{ m['role'] + m['content'] }}{% endfor %}"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ messages.__class__.__mro__ }}", "its chat template cannot be given"),
        ("{% include '/etc/passwd' %}", "its chat template cannot be given"),
        ("{{ 1 // 0 }}", "zero"),
        ("{%", "its chat template cannot be given"),
    ],
)
def test_a_chat_template_that_fails_is_one_line(copy, template, message):
    (copy / "chat_template.jinja").write_text(ROLES + template)
    assert message in failure(copy)


def test_a_tokenizer_without_end_of_text_is_refused_unless_the_model_has_one(copy):
    edited(copy / "tokenizer_config.json", eos_token=None)
    assert load_model(copy).codec.eos_id == 1
    edited(copy / "config.json", eos_token_id=None)
    edited(copy / "generation_config.json", eos_token_id=None)
    assert "no end-of-text token" in failure(copy)


def test_dtype_and_device_are_as_asked(saved):
    assert load_model(saved).model.dtype == torch.float32
    loaded = load_model(str(saved), dtype=torch.bfloat16, device="cpu")
    assert (loaded.model.dtype, loaded.model.device.type) == (torch.bfloat16, "cpu")


@pytest.mark.parametrize("used", [False, True], ids=["fresh", "sampled from before"])
def test_sampling_leaves_the_weights_of_a_deep_rwkv_as_they_were(saved, used):
    tokenizer = AutoTokenizer.from_pretrained(saved)
    sizes = {"hidden_size": 16, "attention_hidden_size": 16, "intermediate_size": 32, "context_length": 64}
    config = RwkvConfig(vocab_size=len(tokenizer), num_hidden_layers=7, eos_token_id=1, **sizes)
    assert config.rescale_every == 6, "from the seventh layer on, weights are halved"
    model = RwkvForCausalLM(config).eval()
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    if used:
        model(torch.tensor([[2, 3]]))
        assert not is_same(model.state_dict(), before), "transformers has halved some"
    engine = LocalEngine(LanguageModel.of(model, tokenizer))
    engine.complete([Request(APPLES, EMPTY, 2)], SamplingSettings(max_completion_length=3), 0)
    assert is_same(model.state_dict(), before)
    assert not model.training


def is_same(weights, others):
    return all(torch.equal(weights[name], others[name]) for name in others)


def test_of_a_run_the_final_model_is_loaded_else_the_best_else_the_last(saved, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").touch()
    assert "without a checkpoint yet" in failure(run)
    for step in (9, 10, 200):
        seal(shutil.copytree(saved, run / f"checkpoint-{step}"))
    (run / "checkpoint-300.tmp").mkdir()
    assert model_directory(run).name == "checkpoint-200"
    state = {"best_model_checkpoint": "/elsewhere/run/checkpoint-10"}
    (run / "checkpoint-200" / "trainer_state.json").write_text(json.dumps(state))
    assert model_directory(run).name == "checkpoint-10"
    shutil.copytree(saved, run / "final")
    assert model_directory(run).name == "final"
    assert load_model(run).context_length == 512


def test_a_model_on_several_devices_is_refused(saved):
    loaded = load_model(saved)
    loaded.model.hf_device_map = {"model.embed_tokens": 0, "lm_head": 1}
    with pytest.raises(ModelError, match="its layers are on several devices; load it without device_map"):
        LanguageModel.of(loaded.model, loaded.codec.tokenizer)
