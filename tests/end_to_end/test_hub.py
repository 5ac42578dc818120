"""Names of the Hub where a file could stand, read by the real library from a Hub on loopback."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hub_server import hub_server

pytest.importorskip("datasets")

# All questions in one process of its own: the library reads where the Hub is when it is imported.
ASK = """
import json, sys
from dataclasses import replace
from partway import load_problems
from mathdata.raw import GSM8K, HubSplit, read_raw
from partway.errors import ProblemError

def told(ask):
    try:
        return ask()
    except ProblemError as error:
        return str(error)

def answers(name):
    return [problem.answer for problem in load_problems(name) if problem.reference]

found = {name: told(lambda: answers(name)) for name in sys.argv[1:]}
small = replace(GSM8K, hub_splits={"train": HubSplit("train", 3, {}), "test": HubSplit("test", 2, {})})
found["raw"] = told(lambda: {split: len(rows) for split, rows in read_raw(small, None).items()})
found["changed"] = told(lambda: read_raw(GSM8K, None))
print(json.dumps(found))
"""


def rows(*numbers: int) -> list[dict[str, Any]]:
    """Rows as GSM8K has them; each answer is three more than its number."""
    return [
        {
            "question": f"Tom has {number} apples and buys 3 more. How many?",
            "answer": f"{number}+3=<<{number}+3={number + 3}>>{number + 3}\n#### {number + 3}",
        }
        for number in numbers
    ]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was told for every name."""
    configs = {
        "main": {"train": rows(1, 2, 3), "test": rows(10, 11)},
        "socratic": {"train": rows(4), "test": rows(20)},
    }
    names = ["openai/gsm8k", "openai/gsm8k:test", "openai/gsm8k:socratic:test"]
    names += ["openai/gsm8k:dev", "openai/gsm8k:easy:test", "openai/nothing"]
    with hub_server("openai/gsm8k", configs) as address:
        home = str(tmp_path_factory.mktemp("home"))
        environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": home, "HF_HUB_OFFLINE": "0"}
        command = [sys.executable, "-c", ASK, *names]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout))


def test_a_name_gives_the_rows_of_its_configuration_and_split(found: dict[str, Any]) -> None:
    assert found["openai/gsm8k"] == [4, 5, 6]
    assert found["openai/gsm8k:test"] == [13, 14]
    assert found["openai/gsm8k:socratic:test"] == [23]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("openai/gsm8k:dev", "Unknown split \"dev\". Should be one of ['train', 'test']"),
        ("openai/gsm8k:easy:test", "'easy' not found. Available: ['main', 'socratic']"),
    ],
)
def test_a_split_or_configuration_that_is_not_there_says_how_to_name_one(
    found: dict[str, Any], name: str, reason: str
) -> None:
    assert reason in found[name]
    assert found[name].endswith("; write openai/gsm8k:SPLIT or openai/gsm8k:CONFIGURATION:SPLIT")


def test_a_name_that_is_not_there_is_refused_in_one_line(found: dict[str, Any]) -> None:
    assert (
        "openai/nothing: no such file, and as a data set of the Hugging Face Hub" in found["openai/nothing"]
    )
    assert "or cannot be accessed; instead, download it and name its file" in found["openai/nothing"]


def test_raw_data_without_a_source_comes_from_the_hub_if_it_is_what_is_known(found: dict[str, Any]) -> None:
    assert found["raw"] == {"train": 3, "test": 2}
    assert "its train split has 3 rows instead of 7473; instead, put train.jsonl" in found["changed"]
