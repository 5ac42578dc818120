"""HumanEval and MBPP, where their files are at hand: the solutions of their authors pass their tests here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls differ elsewhere"),
]

FILES = Path(
    os.environ.get("PARTWAY_PUBLISHED_TESTS", Path(__file__).parents[2].parent / "shared" / "published")
)


@pytest.mark.parametrize(
    ("name", "count", "refused"),
    [
        ("HumanEval.jsonl", 164, [161]),  # calls `eval`
        # Takes longer than a second; formats by a template that it is given; needs `datetime`.
        ("mbpp.jsonl", 974, [123, 390, 910]),
    ],
)
def test_solutions_of_the_authors_pass(name: str, count: int, refused: list[int]) -> None:
    path = FILES / name
    if not path.is_file():
        pytest.skip(f"no {path}; PARTWAY_PUBLISHED_TESTS names a folder with HumanEval.jsonl and mbpp.jsonl")
    command = [sys.executable, "-m", "partway", "data", "check", path, "--language", "python-tests", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    bad = json.loads(done.stdout)["bad_rows"]  # all of them: the table tells equal mistakes once
    assert [row["line"] for row in bad] == refused
    assert f"{len(refused)} bad rows beside {count - len(refused)} good" in done.stderr
