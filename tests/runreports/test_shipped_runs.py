"""Runs are shipped without weights and questions, and open all the same."""

import json
import re
import runpy
import shutil
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from report_cases import apples, write_run

from partway.measuring.paired import compare
from partway.problems import write_problems
from partway.runs import Run
from runreports.rejudging import parse_changes, rejudge

SHIP = Path(__file__).parents[2] / "docs" / "runs" / "ship.py"


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A run that was packed, taken away, and unpacked; and the packing script."""
    monkeypatch.chdir(tmp_path)
    run = write_run(Path("runs/one"))
    run.write_environment(run.environment | {"command": "/home/me/train.py"})
    Path("runs/one/final/model.safetensors").write_bytes(b"weights")
    shutil.copytree("runs/one/evaluations", "drawn")
    main = runpy.run_path(str(SHIP))["main"]
    main("pack", "runs.tar.xz", "runs/one", "drawn")
    shutil.move("runs", "original")
    shutil.rmtree("drawn")
    with tarfile.open("runs.tar.xz") as archive:
        archive.extractall(filter="data")
    return main


def files(directory: str) -> set[str]:
    return {str(path.relative_to(directory)) for path in Path(directory).rglob("*") if path.is_file()}


def test_all_but_the_weights_is_there(shipped):
    assert files("original/one") - files("runs/one") == {"final/model.safetensors"}
    assert files("drawn") == files("original/one/evaluations")


def test_no_question_and_no_path_is_shipped(shipped):
    texts = [path.read_text(encoding="utf-8") for path in Path("runs/one").rglob("*") if path.is_file()]
    assert not any("How many" in text or "/home/me" in text for text in texts)
    assert [p.reference for p in Run(Path("runs/one")).problems("train")] == [p.reference for p in apples(6)]


def test_questions_come_back_from_a_conversion(shipped):
    Path("data").mkdir()
    write_problems(Path("data/train.jsonl"), apples(6))
    write_problems(Path("data/dev.jsonl"), apples(5, 99))
    shipped("fill", "runs/one", "data")
    for name in ["train", "dev"]:
        original, filled = (
            [json.loads(line) for line in Path(f"{runs}/one/problems/{name}.jsonl").read_text().splitlines()]
            for runs in ("original", "runs")
        )
        assert filled == original


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs whose samples are shipped, unpacked."""
    folder = tmp_path_factory.mktemp("shipped")
    with tarfile.open(SHIP.parent / "samples.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "runs"


@pytest.fixture(scope="module")
def counts():
    """The script that knows how many samples of every problem were right."""
    return runpy.run_path(str(SHIP.with_name("counts.py")))


EXPERIMENTS, RESULTS = "docs/experiments.md", "docs/results.md"


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (
            "short_mle short_mle_s1",
            "short_fcs_pcs short_fcs_pcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20, 50), RESULTS: (1, 50)},
        ),
        ("short_mle", "short_fcs_pcs", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("short_mle_s1", "short_fcs_pcs_s1", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("short_mle", "short_fcs", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("short_fcs", "short_fcs_pcs", {EXPERIMENTS: (1, 10, 20, 50)}),
        ("gsm8k_mle", "gsm8k_fcs_pcs", {EXPERIMENTS: (1, 5, 10, 20, 50), RESULTS: (50,)}),
        ("gsm8k_wise_mle", "gsm8k_wise_fcs_pcs", {EXPERIMENTS: (1, 5, 10, 20, 50), RESULTS: (50,)}),
        ("short_wise_mle", "short_wise_fcs_pcs", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("svamp_mle svamp_mle_s1", "svamp_fcs_pcs svamp_fcs_pcs_s1", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("svamp_fcs", "svamp_fcs_pcs", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("filtered_mle", "filtered_fcs_pcs", {EXPERIMENTS: (1, 5, 10, 20, 50), RESULTS: (1, 10, 20, 50)}),
        ("filtered_mle", "filtered_fcs", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("filtered_fcs", "filtered_fcs_pcs", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("filtered_mle_at_40", "filtered_fcs_pcs", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("filtered_mle_at_40", "filtered_mle", {EXPERIMENTS: (1, 5, 10, 20, 50)}),
        ("full_mle full_mle_s1", "full_fcs full_fcs_s1", {EXPERIMENTS: (1, 5, 10, 20, 50, 80)}),
        (
            "full_mle full_mle_s1",
            "full_fcs_pcs full_fcs_pcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20, 50, 80), RESULTS: (1, 80)},
        ),
        (
            "again_mle again_mle_s1",
            "again_fcs_pcs again_fcs_pcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20, 50, 80), RESULTS: (80,)},
        ),
        (
            "again_fcs again_fcs_s1",
            "again_fcs_pcs again_fcs_pcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20, 50, 80), RESULTS: (80,)},
        ),
        ("quarter_mle", "quarter_fcs", {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1, 5, 10, 20)}),
        ("quarter_mle", "quarter_rft", {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1,)}),
        (
            "geo_smol_question_tenth_more geo_smol_question_tenth_more_s1",
            "geo_smol_question_tenth_fcs geo_smol_question_tenth_fcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1,)},
        ),
        (
            "geo_smol_question_tenth_mle geo_smol_question_tenth_mle_s1",
            "geo_smol_question_tenth_fcs geo_smol_question_tenth_fcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20)},
        ),
        (
            "geo_smol_question_quarter_mle geo_smol_question_quarter_mle_s1",
            "geo_smol_question_quarter_fcs geo_smol_question_quarter_fcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1, 20)},
        ),
        (
            "geo_smol_tenth_mle geo_smol_tenth_mle_s1",
            "geo_smol_tenth_fcs geo_smol_tenth_fcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20)},
        ),
        (
            "geo_smol_quarter_mle geo_smol_quarter_mle_s1",
            "geo_smol_quarter_fcs geo_smol_quarter_fcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20)},
        ),
        (
            "geo_smol_quarter_fcs geo_smol_quarter_fcs_s1",
            "geo_smol_quarter_fcs_pcs geo_smol_quarter_fcs_pcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20)},
        ),
        (
            "geo_smol_all_mle geo_smol_all_mle_s1",
            "geo_smol_all_fcs_pcs geo_smol_all_fcs_pcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20)},
        ),
        (
            "geo_smol_all_more geo_smol_all_more_s1",
            "geo_smol_all_fcs_pcs geo_smol_all_fcs_pcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20)},
        ),
        (
            "geo_query_mle geo_query_mle_s1",
            "geo_query_fcs_pcs geo_query_fcs_pcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20)},
        ),
        (
            "geo_query_quarter_mle geo_query_quarter_mle_s1",
            "geo_query_quarter_fcs geo_query_quarter_fcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20)},
        ),
        (
            "geo_again_tenth_mle geo_again_tenth_mle_s1",
            "geo_again_tenth_fcs geo_again_tenth_fcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1, 5, 10, 20)},
        ),
        (
            "geo_again_quarter_mle geo_again_quarter_mle_s1",
            "geo_again_quarter_fcs geo_again_quarter_fcs_s1",
            {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1, 5, 10, 20)},
        ),
        ("few_more", "few_fcs", {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1, 5, 10, 20)}),
        ("few_mle", "few_fcs", {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1, 5, 10, 20)}),
        ("few_mle", "few_rft", {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1, 5, 10, 20)}),
        ("five_mle", "five_rft", {EXPERIMENTS: (1, 5, 10, 20), RESULTS: (1, 20)}),
    ],
)
def test_differences_in_the_documentation_are_those_of_the_shipped_counts(counts, first, second, told):
    compared = counts["compare"](first.split(), second.split())
    for page, ks in told.items():
        text = " ".join((SHIP.parents[2] / page).read_text(encoding="utf-8").split())  # lines may break
        for k in ks:
            assert counts["signed"](compared[f"pass@{k}"][2]) in text


def test_counts_lead_to_the_differences_of_the_evaluations_they_were_taken_from(
    counts, tmp_path, monkeypatch
):
    monkeypatch.setitem(counts["read"].__globals__, "COUNTS", tmp_path / "counts.json")
    runs = [write_run(tmp_path / name, seed=len(name), tested=True).directory for name in ("one", "other")]
    counts["main"]("write", *map(str, runs))
    expected = compare(*(run / "evaluations" / "test.json" for run in runs))
    for name in ("pass@1", "pass@1_at_temperature", "unique"):
        first, second, difference = counts["compare"](["one"], ["other"])[name]
        assert first == expected.first[name]
        assert second == expected.second[name]
        assert difference == expected.difference[name]
        assert difference.value != 0


def test_samples_of_a_shipped_run_are_judged_as_they_were(runs):
    run = Run(runs / "gsm8k_fcs_pcs")
    recorded: Counter[str] = Counter()
    for sample in run.samples():
        recorded[sample.verdict] += sample.count
    found = rejudge(run, {})
    assert +Counter(found.verdicts) == recorded


@pytest.mark.parametrize("name", ["gsm8k_fcs_pcs", "short_fcs_pcs", "filtered_fcs_pcs"])
def test_what_a_shipped_run_kept_is_kept_again(runs, name):
    run = Run(runs / name)
    found, kept = rejudge(run, {}), run.buffers().values()
    assert found.per_problem["partially_correct"] == sum(len(b.partially_correct) for b in kept) / len(kept)


SHORT = "short_fcs_pcs", "two steps, seed 0: 4,928 samples"
FILTERED = "filtered_fcs_pcs", "4,928 samples of FCS[+]PCS"


@pytest.mark.parametrize(
    ("of", "column", "changes"),
    [
        (SHORT, 1, "state=set"),
        (SHORT, 3, "dedup=ast"),
        (FILTERED, 1, "dedup=spelling"),
        (FILTERED, 6, "dead_ends=keep"),
    ],
)
def test_what_other_rules_keep_is_what_the_documentation_says(runs, of, column, changes):
    name, heading = of
    found = rejudge(Run(runs / name), parse_changes(changes))
    text = (SHIP.parents[1] / "experiments.md").read_text(encoding="utf-8")
    [table] = re.findall(rf"\| [^|\n]*{heading} \|.*?\n\n", text, re.DOTALL)
    for row, value in {
        "fully-correct kept": f"{found.per_problem['fully_correct']:.2f}",
        "partially-correct kept": f"{found.per_problem['partially_correct']:.2f}",
    }.items():
        [cells] = re.findall(rf"^\| {row} \| (.*) \|$", table, re.MULTILINE)
        assert cells.split(" | ")[column] == value


def test_questions_of_a_template_come_and_go_together(counts):
    resampled = counts["resampled"]
    apart, alike = resampled([[1.0, 0.0], [0.0, 1.0]]), resampled([[1.0, 1.0], [0.0, 0.0]])
    assert (apart.value, apart.low, apart.high) == (0.5, 0.5, 0.5)
    assert (alike.value, alike.low, alike.high) == (0.5, 0.0, 1.0)
