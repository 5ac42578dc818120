"""`partway buffer` as a user calls it, on a run that was really trained."""

import json

import pytest
from report_cases import write_run
from training_cases import small_trainer

from partway.errors import ConfigError
from partway.runs import Run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    small_trainer(folder / "run").train()
    return Run(folder / "run")


def test_the_tables_show_kinds_verdicts_and_problems(partway, trained):
    code, shown, remarks = partway("buffer", "show", trained.directory, "--top", 2)
    reads, writes = f"partway browse {trained.directory}", f"partway buffer export {trained.directory}"
    assert (code, remarks) == (0, f"partway: next: {reads}, or {writes} solutions.jsonl\n")
    problems, samples = len(trained.problems()), sum(sample.count for sample in trained.samples())
    assert f"{trained.directory} at step 8: {problems} problems, {problems} with a reference\n" in shown
    assert f"\n{samples} self-samples\n" in shown
    assert shown.count("apples-0-") == 4


class AtOnce:
    """A timer that does not wait."""

    def __init__(self, seconds, act, words):
        self.start = lambda: act(*words)

    def cancel(self):
        pass


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["buffer", "show", "RUN"], "reading RUN"),
        (["buffer", "export", "RUN", "FILE"], "writing FILE"),
        (["buffer", "preferences", "RUN", "FILE"], "writing FILE"),
        (["buffer", "import", "RUN", "FILE"], "running the solutions of RUN again"),
        (["browse", "RUN"], "reading the samples of RUN"),
    ],
)
def test_what_may_take_long_says_what_it_does(partway, trained, tmp_path, monkeypatch, words, said):
    monkeypatch.setattr("partway.cli.options.Timer", AtOnce)
    names = {"RUN": str(trained.directory), "FILE": str(tmp_path / "file.jsonl")}
    code, _, remarks = partway(*(names.get(word, word) for word in words))
    assert code == 0
    assert " ".join(names.get(word, word) for word in said.split()) in remarks


def test_questions_cannot_steer_the_terminal(partway, tmp_path):
    run = write_run(tmp_path / "run")
    path = run.directory / "problems" / "train.jsonl"
    path.write_text(path.read_text().replace("Tom has", "[red]Tom[/red] \\u001b]0;x\\u0007\\u001b[31m has"))
    code, shown, _ = partway("buffer", run.directory)
    assert code == 0
    assert "\x1b" not in shown
    assert r"[red]Tom[/red] \x1b]0;x" in shown


def test_json_has_all_counts(partway, trained):
    code, shown, _ = partway("buffer", "show", trained.directory, "--json")
    assert code == 0
    told = json.loads(shown)
    buffers = trained.buffers()
    assert (
        told["fully_correct"] == sum(len(buffer.fully_correct) for buffer in buffers.values()) > len(buffers)
    )
    assert told["partially_correct"] == sum(len(buffer.partially_correct) for buffer in buffers.values()) > 0
    assert sum(told["verdicts"].values()) == told["samples"] == sum(s.count for s in trained.samples())
    assert sum(told["lengths"]["fully_correct"].values()) == told["fully_correct"]


def test_an_export_into_no_directory_is_refused(partway, trained, tmp_path):
    code, _, error = partway("buffer", "export", trained.directory, tmp_path / "new" / "solutions.jsonl")
    assert (code, error.count("\n")) == (1, 1)
    assert f"there is no directory {tmp_path / 'new'}; make it" in error
    assert not (tmp_path / "new").exists()


def test_exported_solutions_begin_a_new_run(partway, trained, tmp_path):
    code, shown, _ = partway("buffer", "export", trained.directory, tmp_path / "solutions.jsonl")
    assert code == 0
    assert "fully-correct and" in shown
    problems = trained.directory / "problems" / "train.jsonl"
    words = (tmp_path / "solutions.jsonl", tmp_path / "new", "--problems", problems)
    code, shown, remarks = partway("buffer", "import", *words)
    assert code == 0, remarks
    assert "run again" in shown
    assert f"--buffer_file {tmp_path / 'new' / 'imported_buffer.jsonl'}" in remarks
    code, shown, _ = partway("buffer", "import", trained.directory, tmp_path / "other", "--json")
    told = json.loads(shown)
    assert (told["problems"], told["unknown_problems"]) == (len(trained.problems()), 0)
    assert told["verdicts"]["known_fully_correct"] == len(trained.problems())
    files = [tmp_path / name / "imported_buffer.jsonl" for name in ("new", "other")]
    assert files[0].read_text() == files[1].read_text()


def test_a_new_run_begins_with_what_was_imported(partway, trained, tmp_path):
    partway("buffer", "import", trained.directory, tmp_path / "new")
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
        (["show", tmp_path], "no run here"),
        (["export", trained.directory, tmp_path / "x.csv"], "ends in .jsonl"),
        (["preferences", trained.directory, tmp_path / "x.csv"], "ends in .jsonl"),
        (["import", trained.directory, trained.directory], "has begun already"),
        (["import", tmp_path / "none.jsonl", tmp_path / "new"], "no such file"),
    ):
        code, shown, remarks = partway("buffer", *arguments)
        assert (code, shown, remarks.count("\n")) == (1, "", 1)
        assert told in remarks


def test_a_run_without_a_command_is_shown(partway, trained):
    assert partway("buffer", trained.directory) == partway("buffer", "show", trained.directory)
    code, _, remarks = partway("buffer", "shw", trained.directory)
    assert (code, remarks.count("\n")) == (2, 1)
    assert "no command 'shw'; did you mean 'show'?" in remarks
