"""`partway buffer` as a user calls it, on a run that was really trained."""

import json

import pytest

from partway import Verdict, trace
from partway.errors import ConfigError
from partway.runs import Run
from partway.runs.run import save_buffers
from report_cases import write_run
from training_cases import small_trainer


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    small_trainer(folder / "run").train()
    return Run(folder / "run")


def test_the_tables_show_kinds_verdicts_and_problems(partway, trained):
    code, shown, remarks = partway("buffer", trained.directory, "--top", 2)
    assert (code, remarks) == (0, "")
    problems, samples = len(trained.problems()), sum(sample.count for sample in trained.samples())
    assert f"{trained.directory} at step 8: {problems} problems, {problems} with a reference\n" in shown
    assert f"\n{samples} self-samples\n" in shown
    assert shown.count("apples-0-") == 4


def test_questions_cannot_steer_the_terminal(partway, tmp_path):
    run = write_run(tmp_path / "run")
    path = run.directory / "problems" / "train.jsonl"
    path.write_text(path.read_text().replace("Tom has", "[red]Tom[/red] \\u001b]0;x\\u0007\\u001b[31m has"))
    code, shown, _ = partway("buffer", run.directory)
    assert code == 0
    assert "\x1b" not in shown
    assert "[red]Tom[/red] �]0;x" in shown


def test_json_has_all_counts(partway, trained):
    code, shown, _ = partway("buffer", trained.directory, "--json")
    assert code == 0
    told = json.loads(shown)
    buffers = trained.buffers()
    assert (
        told["fully_correct"] == sum(len(buffer.fully_correct) for buffer in buffers.values()) > len(buffers)
    )
    assert told["partially_correct"] == sum(len(buffer.partially_correct) for buffer in buffers.values()) > 0
    assert sum(told["verdicts"].values()) == told["samples"] == sum(s.count for s in trained.samples())
    assert sum(told["lengths"]["fully_correct"].values()) == told["fully_correct"]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_an_export_into_no_directory_is_refused(partway, trained, tmp_path, ending):
    code, _, error = partway(
        "buffer", trained.directory, "--export", tmp_path / "new" / f"solutions.{ending}"
    )
    assert (code, error.count("\n")) == (1, 1)
    assert f"there is no directory {tmp_path / 'new'}; make it" in error
    assert not (tmp_path / "new").exists()


def test_exported_solutions_begin_a_new_run(partway, trained, tmp_path):
    code, shown, _ = partway("buffer", trained.directory, "--export", tmp_path / "solutions.jsonl")
    assert code == 0
    assert "fully-correct and" in shown
    problems = trained.directory / "problems" / "train.jsonl"
    options = ("--import", tmp_path / "solutions.jsonl", "--problems", problems)
    code, shown, remarks = partway("buffer", tmp_path / "new", *options)
    assert code == 0, remarks
    assert "run again" in shown
    assert f"--buffer_file {tmp_path / 'new' / 'imported_buffer.jsonl'}" in remarks
    code, shown, _ = partway("buffer", tmp_path / "other", "--import", trained.directory, "--json")
    told = json.loads(shown)
    assert (told["problems"], told["unknown_problems"]) == (len(trained.problems()), 0)
    assert told["verdicts"]["known_fully_correct"] == len(trained.problems())
    files = [tmp_path / name / "imported_buffer.jsonl" for name in ("new", "other")]
    assert files[0].read_text() == files[1].read_text()


def test_a_new_run_begins_with_what_was_imported(partway, trained, tmp_path):
    partway("buffer", tmp_path / "new", "--import", trained.directory)
    imported = str(tmp_path / "new" / "imported_buffer.jsonl")
    trainer = small_trainer(tmp_path / "new", buffer_file=imported, max_steps=1, self_sampling="fcs")
    before = trained.buffers()
    for id, buffer in trainer.buffers.items():
        assert set(buffer.fully_correct) == set(before[id].fully_correct)
        assert not buffer.partially_correct  # the new run keeps none
    trainer.train()
    assert trainer.run.config["buffer_file"] == imported
    first = trainer.run.metrics()[0]
    assert first["buffer/fcs_per_problem"] >= sum(len(b.fully_correct) for b in before.values()) / len(before)


def test_a_buffer_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"buffer_file is .*none\.jsonl, expected a file"):
        small_trainer(tmp_path / "new", buffer_file=str(tmp_path / "none.jsonl"))


def test_mistakes_are_one_line(partway, trained, tmp_path):
    for arguments, told in (
        ([tmp_path], "no run here"),
        ([trained.directory, "--export", tmp_path / "x.csv"], "ends in .jsonl or .parquet"),
        ([trained.directory, "--import", trained.directory], "has begun already"),
        ([tmp_path / "new", "--import", tmp_path / "none.jsonl"], "no such file"),
    ):
        code, shown, remarks = partway("buffer", *arguments)
        assert (code, shown, remarks.count("\n")) == (1, "", 1)
        assert told in remarks
    code, _, remarks = partway("buffer", tmp_path, "--import", "a", "--export", "b.jsonl")
    assert code == 2
    assert "cannot be given together" in remarks


def test_an_audit_names_solutions_that_are_right_by_luck(partway, tmp_path):
    run = write_run(tmp_path / "run")
    code, shown, _ = partway("buffer", run.directory, "--audit")
    assert code == 0
    assert "self-sampled fully-correct solutions" in shown
    code, shown, _ = partway("buffer", run.directory, "--audit", "--json")
    audited = json.loads(shown)["audited"]
    assert {one["verdict"] for one in audited} <= {"confirmed", "spurious", "undecided"}
    assert audited
    assert partway("buffer", run.directory, "--audit", "--export", "x.jsonl")[0] == 2


def test_an_audit_without_references_believes_what_most_solutions_agree_on(partway, tmp_path):
    run = write_run(tmp_path / "run")
    path = run.directory / "problems" / "train.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row | {"solution": None}) + "\n" for row in rows))
    code, shown, _ = partway("buffer", run.directory, "--audit", "--json")
    assert code == 0
    audited = json.loads(shown)["audited"]
    assert {one["verdict"] for one in audited} == {"confirmed"}  # they all do the same
    assert len(audited) > len(rows)  # what was the reference is one of them


def test_an_audit_tells_dead_ends_from_renamings(partway, tmp_path):
    run = write_run(tmp_path / "run", steps=0)
    buffers = run.buffers()
    buffer = next(iter(buffers.values()))
    *steps, last = buffer.fully_correct[0].steps
    renamed, unnamed = steps[0].replace("n0", "other"), last.replace("answer", "other")
    for beginning in (renamed, "\n".join([*steps, unnamed])):
        assert buffer.consider(trace(f"{beginning}\nanswer = -1")) is Verdict.NEW_PARTIALLY_CORRECT
    save_buffers(run.directory / "final", buffers)
    told = json.loads(partway("buffer", run.directory, "--audit", "--json")[1])
    assert told["beginnings"] == 2
    assert [row["beginning"] for row in told["dead_ends"]] == ["\n".join([*steps, unnamed])]
    assert [row["beginning"] for row in told["renamings"]] == [renamed]
    shown = partway("buffer", run.directory, "--audit")[1]
    assert "2 right beginnings" in shown
    assert "dead_ends: drop" in shown
    assert "dedup: alpha" in shown
