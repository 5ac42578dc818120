"""`partway compare --references`: rounds and online arms on one mixed data set, between floor and ceiling."""

import json

import pytest

from partway.arms.running import run_arm
from partway.arms.side_by_side import cells_of
from partway.demo.storyproblems import generate_problems
from partway.problems import write_problems
from partway.runs import Run, read_rows

SMALL = [
    *("--batch-size", "4", "--num-generations", "2", "--train", "8", "--references", "3", "--dev", "2"),
    *("--test", "3", "--samples", "5", "--steps", "4", "--eval-steps", "4", "--seeds", "1"),
]
ARMS = ("mle", "fcs+pcs", "rft", "rest-em", "oracle", "base", "chance")


@pytest.fixture
def compare(partway, monkeypatch, unrendered):
    """Runs the command with its arms in this process, one after the other."""

    def run_arms(experiment, directory, jobs, quiet):
        return [run_arm(experiment, *cell, directory, lambda stage: None) for cell in cells_of(experiment)]

    monkeypatch.setattr("partway.arms.side_by_side.run_arms", run_arms)
    return lambda *words: partway("compare", *words)


def test_all_arms_stand_in_one_table_with_the_same_data_and_samples(compare, tmp_path):
    out = tmp_path / "out"
    file = tmp_path / "arms.yaml"
    file.write_text(f"arms: [{', '.join(ARMS)}]\nmax_completion_length: 20\nmeasures_all: false\n")
    code, printed, err = compare(file, *SMALL, "--out", out, "--json")
    assert code == 0, err
    arms = json.loads(printed)["arms"]
    assert list(arms) == list(ARMS)
    drawn = {name: arm["spent"]["samples"] for name, arm in arms.items()}
    online_and_rounds = ("fcs+pcs", "rft", "rest-em")
    assert {drawn.pop(name) for name in online_and_rounds} == {4 * 4 * 2}
    assert set(drawn.values()) == {0}
    assert all(arm["tables"]["selected"]["metrics"]["pass@5"]["value"] <= 1 for arm in arms.values())
    for name in ("mle", "fcs-pcs", "rft", "oracle"):
        run = Run.at(out / f"{name}-seed0")
        assert sum(p.reference is not None for p in run.problems()) == (8 if name == "oracle" else 3)
    [first, *_] = Run.at(out / "mle-seed0").metrics()
    assert first["buffer/problems_with_a_solution"] == 3
    assert len(list(read_rows(out / "rft-seed0-rounds" / "round1-solutions.jsonl"))) == 8, "all are sampled"


def test_other_references_in_the_same_place_are_refused(compare, tmp_path):
    words = ["--arms", "mle", *SMALL, "--out", tmp_path / "out"]
    assert compare(*words)[0] == 0
    code, _, err = compare(*words, "--references", "4")
    assert code == 1
    assert "made by a comparison with other references; choose another --out" in err


def test_data_with_mixed_rows_is_to_be_named_so(compare, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        write_problems(folder / f"{split}.jsonl", generate_problems(8, seed=len(split)))
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    mixed = [row if place < 3 else {**row, "solution": ""} for place, row in enumerate(rows)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed))
    words = [
        "--data",
        folder,
        "--model",
        "tiny-storyproblems",
        "--arms",
        "mle,oracle",
        "--out",
        tmp_path / "o",
    ]
    sizes = ["--batch-size", "4", "--train", "8", "--dev", "2", "--test", "3", "--seeds", "1"]
    code, _, err = compare(*words, *sizes)
    assert code == 1
    assert "arm oracle learns the references that the others do not see" in err
    words[5] = "mle,fcs"
    code, _, err = compare(*words, *sizes)
    assert code == 1
    assert "3 of 8 training problems have a reference; say so with --references 3" in err
