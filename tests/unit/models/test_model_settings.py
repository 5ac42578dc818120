"""Settings about the model itself: what works with trees, what is refused in one line, what loads again."""

from importlib.util import find_spec

import pytest
from training_cases import SMALL, ScriptedEngine, apples, small_trainer

from partway.errors import ConfigError
from partway.learning.layouts import TreeRows
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from partway.training.preparation import prepared_model

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


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("model", {"load_in_8bit": True}, "load_in_8bit is true but use_peft is false"),
        ("tiny", {"load_in_4bit": True, "use_peft": True}, "the tiny model has nothing to save"),
        ("tiny", {"attn_implementation": "magic"}, "attn_implementation is magic, which fails here"),
        (
            "tiny",
            {"attn_implementation": "flex_attention", "use_cpu": True},
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
