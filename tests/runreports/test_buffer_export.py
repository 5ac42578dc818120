"""Buffers leave a run as a data set and enter another only after every solution ran again."""

import json
from collections import Counter
from pathlib import Path

import pytest
from chat_templates import TEMPLATES, chat_run
from report_cases import write_run
from transformers import AutoTokenizer

from partway.buffer import Rules, Verdict
from partway.errors import ConfigError, ProblemError, RunError
from partway.language import PYTHON
from partway.problem import Problem
from partway.runs import Run, read_rows
from partway.solution import Solution
from runreports.buffer_command import _tell_written
from runreports.buffers import (
    export_buffers,
    export_rows,
    import_buffers,
    problems_in,
    rules_in,
    saved_rows,
    summarize_buffers,
    write_import,
)
from runreports.preferences import preferences

OIL = Problem(
    "oil",
    "10 ml for each of  2 wheels,\nand 5 ml more?",
    25,
    "n0 = 10\nn1 = 2\nt0 = n0 * n1\nanswer = t0 + 5",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("export") / "run", problems=8)


def kept(buffers):
    return {id: (set(buffer.fully_correct), set(buffer.partially_correct)) for id, buffer in buffers.items()}


def test_the_summary_counts_what_the_buffers_hold(run):
    summary = summarize_buffers(run)
    buffers = run.buffers()
    assert summary.solutions == {
        "fully_correct": sum(len(b.fully_correct) for b in buffers.values()),
        "partially_correct": sum(len(b.partially_correct) for b in buffers.values()),
    }
    assert summary.lengths["fully_correct"] == Counter(
        len(s) for b in buffers.values() for s in b.fully_correct
    )
    assert summary.verdicts == dict.fromkeys(Verdict, 0) | Counter(s.verdict for s in run.samples())
    assert (summary.step, summary.references, len(summary.problems)) == (40, 8, 8)
    sizes = [problem.fully_correct + problem.partially_correct for problem in summary.problems]
    assert sizes == sorted(sizes, reverse=True)
    assert all(problem.samples == 8 for problem in summary.problems)
    assert summary.to_json(top=2)["least_explored"][0]["problem"] == summary.problems[-1].problem


def test_a_run_without_a_checkpoint_has_no_buffers_to_show(tmp_path):
    run = Run(tmp_path)
    run.write_config({})
    with pytest.raises(RunError, match="no checkpoint was written yet"):
        summarize_buffers(run)


def test_exported_rows_are_what_the_model_reads_and_writes(run, tmp_path):
    counts = export_buffers(run, tmp_path / "solutions.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "solutions.jsonl").read_text().splitlines()]
    first = run.problems()[0]
    assert rows[0] == {
        "prompt": f"# {' '.join(first.question.split())}\n",
        "completion": f"{first.reference.text}\n",
        "problem_id": first.id,
        "kind": "fully_correct",
    }
    assert counts == Counter(row["kind"] for row in rows) == summarize_buffers(run).solutions
    expected = {
        (id, solution.text + "\n", kind)
        for id, buffer in run.buffers().items()
        for kind in ("fully_correct", "partially_correct")
        for solution in getattr(buffer, kind)
    }
    assert {(row["problem_id"], row["completion"], row["kind"]) for row in rows} == expected


def test_one_kind_can_be_exported_alone(run, tmp_path):
    counts = export_buffers(run, tmp_path / "fcs.jsonl", ("fully_correct",))
    assert counts.keys() == {"fully_correct"}


def test_other_endings_are_refused(run, tmp_path):
    with pytest.raises(ConfigError, match=r"ends in \.jsonl"):
        export_buffers(run, tmp_path / "solutions.csv")


def test_datasets_loads_what_was_exported(run, tmp_path):
    datasets = pytest.importorskip("datasets")
    path = tmp_path / "solutions.jsonl"
    export_buffers(run, path)
    data = datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert data.column_names == ["prompt", "completion", "problem_id", "kind"]
    assert {feature.dtype for feature in data.features.values()} == {"string"}
    assert data.num_rows == sum(summarize_buffers(run).solutions.values())
    assert all(row["prompt"].startswith("# ") and row["completion"].endswith("\n") for row in data)


@pytest.mark.parametrize("source", ["run", "buffer", "jsonl"])
def test_imported_buffers_hold_the_same_solutions(run, tmp_path, source):
    path = {"run": run.directory, "buffer": run.directory / "final" / "buffer.jsonl"}.get(
        source, tmp_path / f"solutions.{source}"
    )
    if source == "jsonl":
        export_buffers(run, path)
    imported = import_buffers(path, run.problems(), Rules())
    assert kept(imported.buffers) == kept(run.buffers())
    assert imported.verdicts.keys() == {
        Verdict.KNOWN_FULLY_CORRECT,  # the references
        Verdict.NEW_FULLY_CORRECT,
        Verdict.NEW_PARTIALLY_CORRECT,
    }
    write_import(tmp_path / "imported.jsonl", imported)
    again = import_buffers(tmp_path / "imported.jsonl", run.problems(), Rules())
    assert kept(again.buffers) == kept(run.buffers())


def test_rules_of_the_new_run_decide_what_is_kept(run):
    imported = import_buffers(run.directory, run.problems(), Rules(keeps_partial=False))
    assert all(not buffer.partially_correct for buffer in imported.buffers.values())
    assert rules_in(run.directory) == (Rules(), PYTHON)


def test_problems_that_the_new_run_does_not_have_are_left_out(run):
    imported = import_buffers(run.directory, run.problems()[:3], Rules())
    assert (len(imported.buffers), imported.unknown) == (3, 5)


def test_files_that_hold_no_solutions_are_refused_with_the_row(run, tmp_path):
    (tmp_path / "other.jsonl").write_text('{"question": "x"}\n')
    with pytest.raises(RunError, match=r"other\.jsonl, row 1: no kept solutions"):
        list(saved_rows(tmp_path / "other.jsonl"))
    with pytest.raises(RunError, match="no such file"):
        list(saved_rows(tmp_path / "none.jsonl"))
    with pytest.raises(RunError, match="no run here"):
        list(saved_rows(tmp_path))


def test_a_file_alone_does_not_say_which_problems_it_is_about(run, tmp_path):
    export_buffers(run, tmp_path / "solutions.jsonl")
    with pytest.raises(ProblemError, match="Add --problems FILE"):
        problems_in(tmp_path / "solutions.jsonl")
    assert problems_in(run.directory) == run.problems()


def test_written_imports_are_buffers_of_a_run(run, tmp_path):
    write_import(tmp_path / "imported.jsonl", import_buffers(run.directory, run.problems(), Rules()))
    rows = list(read_rows(tmp_path / "imported.jsonl"))
    assert [row["id"] for row in rows] == [problem.id for problem in run.problems()]
    assert {solution["found"] for row in rows for solution in row["solutions"]} == {0}


def kept_and_read(run, codec):
    """Exported rows of fully-correct solutions, each with the tokens that the run's model read and wrote."""
    questions = {problem.id: problem.question for problem in run.problems()}
    solutions = [
        s for r in read_rows(run.saved_buffers()) for s in r["solutions"] if s["kind"] == "fully_correct"
    ]
    rows = list(export_rows(run, ("fully_correct",)))
    assert rows
    for row, solution in zip(rows, solutions, strict=True):
        prompt = codec.prompt(questions[row["problem_id"]])
        yield row, prompt, codec.target(Solution(tuple(solution["steps"])), finished=True)


@pytest.mark.parametrize("template", TEMPLATES)
def test_messages_of_a_chat_run_become_the_tokens_that_its_model_read(tmp_path, template):
    run, codec = chat_run(tmp_path, template)
    tokenizer = AutoTokenizer.from_pretrained(run.final)
    for row, prompt, target in kept_and_read(run, codec):
        # As TRL does it: the prompt alone, then both; what was added is learned.
        asked = tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, return_dict=False)
        both = tokenizer.apply_chat_template([*row["prompt"], *row["completion"]], return_dict=False)
        assert asked == prompt
        assert both[: len(prompt) + len(target)] == prompt + target  # templates may write on after the turn
        assert both.count(codec.eos_id) == prompt.count(codec.eos_id) + 1


def test_a_template_that_knows_questions_alone_is_exported_as_text(tmp_path):
    run, codec = chat_run(tmp_path, "SmolLM2", prompt_template="Q: {{ question }}\nA:\n")
    for row, prompt, target in kept_and_read(run, codec):
        assert codec.encode(row["prompt"]) == prompt
        assert [*codec.encode(row["completion"]), codec.eos_id] == target  # which TRL adds to text


@pytest.mark.parametrize("template", TEMPLATES)
def test_preferences_of_a_chat_run_begin_as_its_model_read(tmp_path, template):
    run, codec = chat_run(tmp_path, template)
    questions = {problem.id: problem.question for problem in run.problems()}
    pairs = list(preferences(run))
    assert pairs
    for pair in pairs:
        prompt = codec.prompt(questions[pair.problem_id])
        for end in (pair.chosen, pair.rejected):
            tokens = codec.tokenizer(pair.prompt + end)["input_ids"]
            assert tokens[: len(prompt)] == prompt
            assert tuple(tokens[-len(codec.closing) :]) == codec.closing


def test_messages_are_imported_again(tmp_path):
    run, _ = chat_run(tmp_path, "SmolLM2")
    export_buffers(run, tmp_path / "solutions.jsonl")
    imported = import_buffers(tmp_path / "solutions.jsonl", run.problems(), Rules())
    assert kept(imported.buffers) == kept(run.buffers())


@pytest.mark.parametrize(
    ("counts", "noun", "told"),
    [
        ({"fully_correct": 1}, "solutions", "1 fully-correct solution"),
        (
            {"fully_correct": 1, "partially_correct": 2},
            "solutions",
            "1 fully-correct and 2 partially-correct solutions",
        ),
        ({"pairs": 1}, "", "1 pair"),
        ({}, "", "nothing to write"),
    ],
)
def test_what_was_written_is_counted_in_words(counts, noun, told, capsys):
    _tell_written("run", Path("rows.jsonl"), counts, noun, as_json=False)
    assert capsys.readouterr().out == f"rows.jsonl: {told}\n"
