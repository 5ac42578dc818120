"""The benchmarks run, compare like with like and print one JSON object; how fast is for quiet machines."""

import ast
import json
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from benchmarks import learning_contenders, sample, sampling_contenders, trace, train
from benchmarks.__main__ import BENCHMARKS, app
from partway.errors import ProblemError
from partway.language import python, trace_all
from partway.learning.token_tree import Targets
from partway.models.engine import SamplingSettings
from partway.models.loading import load_model
from partway.problem import Problem
from partway.problems import write_problems
from straightline import parsing

ROOT = Path(__file__).parents[2]


def bench(*words):
    result = CliRunner().invoke(app, ["--quiet", *words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def run(*words):
    """In a process of its own: tracing pins it to a core."""
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


SMALL = ("--problems", "2", "-n", "4", "--max-completion-length", "12", "--rounds", "1", "--rows", "8")


@pytest.fixture(scope="module")
def sampled():
    return bench("sample", "--model", "tiny-storyproblems", *SMALL)


def test_samples_are_raced_fine_tuned_untrained_and_one_each(sampled):
    for race in (sampled, sampled["untrained"], sampled["one_each"]):
        assert set(race["tokens_per_second"]) == {"tree", "drafts", "generate", "generate_batch"}
        assert race["speedup_vs_generate"] > 0
        assert race["speedup_with_drafts"] > 0
        assert 0 < race["unique_share"] <= 1
    assert sampled["untrained"]["tokens_returned"] == 4 * 12, "fresh weights end at the limit only"
    assert sampled["untrained"]["frac_drafted_tokens"] < 0.1 < sampled["one_each"]["frac_drafted_tokens"]
    assert 32 <= sampled["one_each"]["tokens_returned"] <= 32 * 12


def test_learning_and_sampling_are_measured_beside_their_roofs():
    sizes = ("--hidden-size", "64", "--layers", "2", "--vocabulary", "512", "--batch", "2")
    found = bench("roof", *sizes, "--prompt", "8", "--completion", "6", "--rounds", "3")
    assert found["gigaflops"] > 0
    for name in ("learning", "sampling"):
        measured, roof = found["tokens_per_second"][name], found["roof_tokens_per_second"][name]
        assert 0 < measured < roof, "so small a model is all overhead"
        assert found["share_of_roof"][name] == pytest.approx(measured / roof, abs=0.01)


def test_a_baseline_that_does_not_run_here_is_named(monkeypatch):
    def refuse(task, seed, rows):
        raise RuntimeError("no paged attention here")

    monkeypatch.setattr(sampling_contenders, "draw_with_generate_batch", refuse)
    language_model = load_model("tiny-storyproblems")
    problem = Problem("p", "How many?", 1)
    task = sampling_contenders.Task(language_model, [problem], 2, SamplingSettings(max_completion_length=4))
    result = sample.race(task, rows=2, rounds=1, seed=0)
    assert result["tokens_returned"] <= 8
    assert result["speedup_vs_generate_batch"] is None
    assert result["generate_batch_refused"] == "RuntimeError: no paged attention here"


def test_the_table_of_samples_has_a_row_for_each_race(sampled, capsys):
    sample.show(sampled | {"speedup_vs_generate_batch": None, "generate_batch_refused": "RuntimeError: no"})
    output = capsys.readouterr().out
    assert all(name in output for name in ("fine-tuned", "untrained", "one each"))
    assert "generate_batch did not run: RuntimeError: no" in output


def test_learning_gives_the_gradients_of_flat_rows():
    result = bench("learn", "--batch", "2", "--sizes", "1,4", "--rounds", "1")
    assert [row["solutions"] for row in result["rows"]] == [1, 4]
    assert result["speedup_vs_flat_at_4"] == result["rows"][1]["speedup"]
    for row in result["rows"]:
        assert row["gradient_difference"] < 1e-4
        assert row["ours_tokens"] < row["flat_tokens"]
        assert 1 <= row["tokens_over_distinct"] <= 1.15


@pytest.mark.parametrize("sizes", ["", "0", "one"])
def test_sizes_that_are_no_numbers_are_refused(sizes):
    result = CliRunner().invoke(app, ["learn", "--sizes", sizes])
    assert "try 1,2,4,8,16" in str(result.exception)


def test_tracing_is_raced_against_parsing_and_processes(tmp_path):
    programs = tmp_path / "programs.jsonl"
    steps = [f"n0 = {number}\nn1 = 3\nanswer = n0 * n1" for number in range(40)]
    programs.write_text("".join(json.dumps({"solution": text}) + "\n" for text in steps))
    done = run("--quiet", "trace", "--programs", str(programs), "--rounds", "1", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["programs"] == 40
    rates = result["warm_per_second"] / result["ast_parse_per_second"]
    assert result["warm_vs_ast_parse"] == pytest.approx(rates, rel=0.02)
    assert result["interpreter_vs_process"] > 1


def test_cold_tracing_knows_no_line_and_warm_tracing_no_program(monkeypatch):
    trace_all(["n0 = 3\nanswer = n0 + 1"])
    known = []
    monkeypatch.setattr(
        trace,
        "trace_all",
        lambda texts: known.append((len(parsing.known_lines) > 0, len(python._memos))),
    )
    trace.trace_afresh([])
    trace.trace_cold([])
    assert known == [(True, 0), (False, 0)]


def test_programs_for_the_workers_are_no_race_for_the_interpreter():
    with pytest.raises(ProblemError, match="hands it on"):
        trace.check_covered(["n0 = 1\nanswer = n0", "answer = len('abc')"])


def test_no_tree_of_the_baseline_outlives_its_program(monkeypatch):
    alive = []
    parse = ast.parse
    trees = weakref.WeakSet()

    def watched(text):
        alive.append(len(trees))
        tree = parse(text)
        trees.add(tree)
        return tree

    monkeypatch.setattr(ast, "parse", watched)
    trace.parse_all(["n0 = 1"] * 5)
    assert max(alive) <= 1


def test_padded_rows_are_sorted_by_length():
    language_model = load_model("tiny-storyproblems")
    step = [Targets.of([1] * length, [[2] * length]) for length in (3, 30, 3, 30)]
    assert learning_contenders.learn_flat(language_model.model, step, 0, rows_at_once=2) == 2 * 6 + 2 * 60


def test_every_benchmark_has_an_example_and_is_run_by_make_bench_or_named_in_the_docs():
    pages = ("Makefile", "docs/performance.md", "docs/comparing.md")
    told = "".join((ROOT / page).read_text() for page in pages)
    for name in BENCHMARKS:
        command = app.get_command(click.Context(app), name)
        assert f"python -m benchmarks {name}" in command.get_help(click.Context(command))
        assert f"python -m benchmarks {name}" in told


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["leran"], 2, "no command 'leran'; did you mean 'learn'?"),
        (["buffer", "--problems", "0"], 2, "'--problems': 0 is not in the range x>=1"),
        (["trace", "--programs", "Makefile"], 1, "Makefile: not JSONL"),
        (["train", "--problems", "none.jsonl"], 1, "none.jsonl"),
    ],
)
def test_a_mistake_is_one_line(words, code, complaint):
    done = run(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done.stderr
    assert complaint in done.stderr


def test_buffers_are_filled_saved_and_loaded():
    result = bench("buffer", "--problems", "3")
    assert result["problems"] == 3
    assert result["solutions_per_problem"] >= 4


def test_signed_weights_on_the_tree_have_the_gradient_of_a_row_for_each_sample():
    result = bench("signed", "--batch", "2", "--samples", "6", "--rounds", "1")
    assert result["gradient_difference_float64"] < 1e-6
    assert result["gradient_difference_float32"] < 1e-5
    assert result["ours_tokens"] < result["flat_tokens"]


def test_groups_without_variance_are_counted_exactly(tmp_path):
    problem = Problem("p", "How many?", 3, "a = 1\nb = a + 1\nanswer = b + 1")
    write_problems(tmp_path / "problems.jsonl", [problem])
    texts = ["a = 1\nanswer = a + 2", "a = 1\nb = 2\nanswer = 9", "a = 1\nb = 5\nanswer = 9", "answer = 9"]
    rows = [{"task_id": "p", "completion": text, "passed": text == texts[0]} for text in texts]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [str(tmp_path / "samples.jsonl"), "--problems", str(tmp_path / "problems.jsonl")]
    result = bench("variance", *words, "--groups", "2,3")
    pairs, triples = result["rows"]
    assert (pairs["answer"], pairs["trace"]) == (0.5, 0.0), "of six pairs three are of wrong ones only"
    assert (triples["answer"], triples["trace"]) == (0.25, 0.0)
    assert result["right"] == 0.25


def test_grpo_takes_part_only_where_it_can_and_says_why_not(monkeypatch):
    one, two = (SimpleNamespace(args=SimpleNamespace(samples_per_problem=n)) for n in (1, 2))
    assert "at least 2" in train.grpo_line(train.grpo(one, 1), 1.0)
    monkeypatch.setitem(sys.modules, "trl", None)
    assert "make test-integrations" in train.grpo_line(train.grpo(two, 1), 1.0)
    line = train.grpo_line({"seconds": 2.0, "share_drawing": 0.25}, 0.5)
    assert line == "2.000 s a step, 25% of it drawing; 4.0 times ours"
