"""What a demo sampled, labelled without reading it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.spurious import command
from partway.demo.storyproblems import generate_problems
from partway.errors import RunError
from partway.runs import Run


def test_what_a_demo_sampled_is_labelled_by_the_true_relation_of_its_stories(tmp_path: Path):
    story = next(p for p in generate_problems(40, seed=1000, difficulty="easy") if len(p.reference) > 3)
    turned = [line for line in story.reference.steps if line.startswith("n")][::-1]
    turned += [line for line in story.reference.steps if not line.startswith("n")]
    run = Run(tmp_path / "fcs-seed0")
    run.write_config({})
    run.evaluations_directory.mkdir()
    texts = [story.reference.text, "\n".join(turned), f"answer = {story.answer}", "answer = -1"]
    row = {"task_id": story.id, "passed": True, "result": "passed", "count": 1}
    rows = [json.dumps(row | {"completion": text}) for text in texts]
    (run.evaluations_directory / "test.jsonl").write_text("\n".join(rows), encoding="utf-8")
    out = tmp_path / "found.json"
    result = CliRunner().invoke(command, [str(tmp_path), "--out", str(out), "--json"], catch_exceptions=False)
    found = json.loads(result.output)
    assert found == json.loads(out.read_text())
    assert (found["solutions"], found["right, confirmed"], found["lucky, spurious"]) == (2, 1, 1)
    assert (found["precision"], found["recall"], found["wrong"]) == (1.0, 1.0, [])


def test_a_directory_without_samples_is_refused(tmp_path: Path):
    with pytest.raises(RunError, match="partway demo --paper --out"):
        CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
