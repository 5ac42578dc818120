"""The JSON Schema of the settings: every config of the project is valid, mistakes are not."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from partway.cli import app
from partway.cli.schema import config_schema
from partway.cli.training_keys import training_keys
from partway.language.named import language_class
from partway.training.config import SelfSamplingConfig, own_fields

ROOT = Path(__file__).parents[3]
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
CONFIGS = [path for path in CONFIGS if path.parent.name not in ("accelerate", "arms")]
CONFIGS = [path for path in CONFIGS if "\narms:" not in path.read_text(encoding="utf-8")]  # comparisons
SCHEMA = config_schema()
TYPES = {"string": str, "object": dict, "array": list, "null": type(None), "boolean": bool}


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """As much of JSON Schema as ours uses."""
    kind = schema.get("type")
    if kind in ("integer", "number"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or (kind == "integer" and value != int(value)):
            return False
    elif kind is not None and not isinstance(value, TYPES[kind]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return False
    if "anyOf" in schema and not any(is_valid(value, option) for option in schema["anyOf"]):
        return False
    if isinstance(value, list):
        return all(is_valid(item, schema.get("items", {})) for item in value)
    if isinstance(value, dict) and "properties" in schema:
        return all(
            key in schema["properties"] and is_valid(v, schema["properties"][key]) for key, v in value.items()
        )
    return True


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_config_is_valid(path: Path):
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    language_class(settings.get("language", "python"))  # says so if a folder is missing that it needs
    for key, value in settings.items():
        assert is_valid({key: value}, SCHEMA), f"{key}: {value!r}"


def test_what_a_run_writes_is_valid(tmp_path: Path):
    args = SelfSamplingConfig(output_dir=str(tmp_path), use_cpu=True, eval_k=[1, 5])
    for key, value in args.settings.items():
        assert is_valid({key: value}, SCHEMA), f"{key}: {value!r}"


@pytest.mark.parametrize(
    "settings",
    [
        {"selfsampling": "fcs"},
        {"self_sampling": "fsc"},
        {"max_steps": "many"},
        {"max_steps": 1.5},
        {"bf16": "yes please"},
        {"eval_k": ["one"]},
        {"base": 1},
    ],
)
def test_mistakes_are_found(settings: dict[str, Any]):
    assert not is_valid(settings, SCHEMA)


def test_the_command_prints_it_without_a_config():
    result = CliRunner().invoke(app, ["train", "--json-schema"])
    assert result.exit_code == 0
    schema = json.loads(result.output)
    assert schema == json.loads(json.dumps(SCHEMA))
    assert schema["properties"]["self_sampling"]["enum"] == ["none", "fcs", "fcs+pcs"]
    assert all("description" in schema["properties"][f.name] for f in own_fields())


def test_completion_reads_the_same_keys_from_source():
    assert set(training_keys()) >= set(SCHEMA["properties"]) - {"base"}
    assert training_keys()["self_sampling"] == ("none", "fcs", "fcs+pcs")
