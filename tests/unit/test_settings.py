"""Settings: files on a base, the command line on top, names and types checked."""

from dataclasses import dataclass
from typing import Literal

import pytest

from partway.cli.config_files import file_of, parse_overrides, read_settings
from partway.errors import ConfigError
from partway.settings import checked
from partway.training import SelfSamplingConfig


@dataclass
class Schema:
    learning_rate: float = 1e-4
    max_steps: int = 10
    bf16: bool = False
    self_sampling: Literal["none", "fcs", "fcs+pcs"] = "fcs+pcs"
    eval_k: list[int] | None = None
    run_name: str | None = None
    eval_steps: float | None = None
    report_to: str | list[str] | None = "none"
    lr_scheduler_kwargs: dict | str | None = None


def test_a_file_adds_to_its_base_which_may_have_one_itself(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "all.yaml").write_text("seed: 1\nmax_steps: 5\nlearning_rate: 1e-3\n")
    (tmp_path / "sub" / "base.yaml").write_text("base: ../all.yaml\nmax_steps: 6\n")
    (tmp_path / "sub" / "leaf.yaml").write_text("base: base.yaml\nseed: 2\n")
    assert read_settings(tmp_path / "sub" / "leaf.yaml") == {
        "seed": 2,
        "max_steps": 6,
        "learning_rate": "1e-3",
    }


def test_of_several_bases_the_later_wins(tmp_path):
    (tmp_path / "a.yaml").write_text("seed: 1\nmax_steps: 1\n")
    (tmp_path / "b.yaml").write_text("max_steps: 2\n")
    (tmp_path / "c.yaml").write_text("base: [a.yaml, b.yaml]\n")
    assert read_settings(tmp_path / "c.yaml") == {"seed": 1, "max_steps": 2}


def test_a_file_that_is_its_own_base_is_refused(tmp_path):
    (tmp_path / "a.yaml").write_text("base: b.yaml")
    (tmp_path / "b.yaml").write_text("base: a.yaml")
    with pytest.raises(ConfigError, match="is its own base"):
        read_settings(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("seed: 1\nseed: 2", "line 2 gives 'seed' again"),
        ("seed: 2024-99-99", "not YAML"),
        ("- a\n- b\n", "found a list"),
        ("a: [", "not YAML"),
        ("just words", "found a str"),
    ],
)
def test_a_file_that_holds_no_settings_is_refused(tmp_path, content, message):
    (tmp_path / "a.yaml").write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_settings(tmp_path / "a.yaml")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read \(No such file"):
        read_settings(tmp_path / "nowhere.yaml")


def test_an_empty_file_has_no_settings(tmp_path):
    (tmp_path / "a.yaml").write_text("# nothing yet\n")
    assert read_settings(tmp_path / "a.yaml") == {}


def test_the_command_line_wins_and_is_typed_by_the_field():
    overrides = parse_overrides(
        ["--learning-rate", "1e-5", "--max_steps=7", "--bf16", "--eval_k", "1,5,10", "--run_name", "007"]
    )
    assert checked({"learning_rate": 1e-3, "max_steps": 5}, Schema, overrides) == {
        "learning_rate": 1e-5,
        "max_steps": 7,
        "bf16": True,
        "eval_k": [1, 5, 10],
        "run_name": "007",
    }


def test_negative_values_are_values():
    assert parse_overrides(["--max_steps", "-1"]) == {"max_steps": "-1"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"learning_rate": "1e-4"}, 1e-4),  # YAML 1.1 reads this as text
        ({"learning_rate": 1}, 1.0),
        ({"max_steps": 2e3}, 2000),
        ({"eval_k": 5}, [5]),
        ({"eval_steps": None}, None),
        ({"report_to": ["tensorboard"]}, ["tensorboard"]),
        ({"report_to": "tensorboard"}, "tensorboard"),
        ({"lr_scheduler_kwargs": {"power": 2}}, {"power": 2}),
    ],
)
def test_values_take_the_type_of_their_field(settings, expected):
    (value,) = checked(settings, Schema).values()
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rat": 1}, "unknown key 'learning_rat'; did you mean 'learning_rate'"),
        ({"xyzzy": 1}, r"unknown key 'xyzzy'; docs/keys\.md"),
        ({"max_steps": "many"}, "max_steps is 'many', expected int"),
        ({"max_steps": 2.5}, r"max_steps is 2\.5, expected int"),
        ({"max_steps": True}, "max_steps is True, expected int"),
        ({"bf16": "yes please"}, "bf16 is 'yes please', expected bool"),
        ({"bf16": 1}, "bf16 is 1, expected bool"),
        ({"learning_rate": None}, "learning_rate is None, expected float"),
        ({"self_sampling": "fcs+psc"}, r"expected one of none, fcs, fcs\+pcs; did you mean 'fcs\+pcs'"),
        ({"max_steps": "nan"}, "max_steps is 'nan', expected int"),
        ({"max_steps": float("inf")}, "max_steps is inf, expected int"),
        ({"max_steps": 2**63}, "max_steps is 9223372036854775808, expected int"),
        ({"learning_rate": "nan"}, "learning_rate is 'nan', expected float"),
        ({"max_steps": ["x" * 1_000] * 1_000}, r"max_steps is \['x{58}\.\.\., expected int"),
        ({"max_tokens": 1}, r"unknown key 'max_tokens'; docs/keys\.md"),
        ({"eval_k": ["one"]}, r"eval_k is \['one'\], expected list\[int\] or null"),
    ],
)
def test_mistakes_are_named_with_what_was_expected(settings, message):
    with pytest.raises(ConfigError, match=message):
        checked(settings, Schema)


def test_pairs_are_asked_for_as_they_are_written():
    with pytest.raises(
        ConfigError, match=r"objective_args is 'share=1', expected pairs such as \{name: value\}"
    ):
        checked({}, SelfSamplingConfig, {"objective_args": "share=1"})


def test_a_mistake_is_told_with_the_file_that_makes_it(tmp_path):
    (tmp_path / "base.yaml").write_text("max_steps: many\n")
    (tmp_path / "leaf.yaml").write_text("base: base.yaml\nlearning_rat: 1\n")
    settings = read_settings(tmp_path / "leaf.yaml")
    with pytest.raises(ConfigError, match=r"base\.yaml: max_steps is 'many'"):
        checked(settings, Schema, where=file_of(tmp_path / "leaf.yaml"))
    with pytest.raises(ConfigError, match=r"leaf\.yaml: unknown key 'learning_rat'"):
        checked({"learning_rat": 1}, Schema, where=file_of(tmp_path / "leaf.yaml"))


@pytest.mark.parametrize("text", ["2024-99-99", "1,[", "[", "{"])
def test_what_is_no_yaml_on_the_command_line_is_text(text):
    assert checked({}, Schema, {"run_name": text}) == {"run_name": text}


def test_a_value_without_a_key_is_refused():
    with pytest.raises(ConfigError, match="'3' stands alone; expected --key value"):
        parse_overrides(["3"])


def test_a_value_that_no_file_could_hold_is_refused():
    with pytest.raises(ConfigError, match=r"--output_dir: 'caf\\udce9' is not UTF-8 text"):
        parse_overrides(["--output_dir", "caf\udce9"])


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("train", "train_file"),
        ("model", "model_name_or_path"),
        ("batch_size", "per_device_train_batch_size"),
        ("epochs", "num_train_epochs"),
    ],
)
def test_a_part_of_a_name_suggests_it_and_names_of_ours_come_first(key, meant):
    with pytest.raises(ConfigError, match=f"unknown key '{key}'; did you mean '{meant}'"):
        checked({key: 1}, SelfSamplingConfig)
