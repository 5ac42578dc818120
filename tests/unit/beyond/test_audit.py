"""`partway buffer audit`, and a run whose rules ask for no solutions that are right by luck."""

import json

import pytest
from click.testing import CliRunner
from report_cases import write_run
from training_cases import small_trainer

from partway.beyond.audit import command
from partway.buffer import Rules, SolutionBuffer
from partway.cli import app
from partway.errors import ConfigError
from partway.language import trace
from partway.problem import Problem
from partway.runs import Run
from partway.runs.run import save_buffers


def audited(run: Run) -> list[dict[str, str]]:
    shown = CliRunner().invoke(app, ["buffer", "audit", str(run.directory), "--json"])
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.output)["audited"]


def test_an_audit_names_solutions_that_are_right_by_luck(tmp_path):
    run = write_run(tmp_path / "run", steps=0)
    buffers = run.buffers()
    buffer = next(iter(buffers.values()))
    buffer.consider(trace(f"answer = {buffer.problem.answer}"))
    save_buffers(run.directory / "final", buffers.values())
    (one,) = (row for row in audited(run) if row["verdict"] == "spurious")
    assert one["problem"] == buffer.problem.id
    shown = CliRunner().invoke(command, [str(run.directory)]).stdout
    assert "self-sampled fully-correct solution" in shown
    assert f"  answer = {buffer.problem.answer}\n" in shown
    assert one["reason"] in shown


def test_an_audit_without_references_believes_what_most_solutions_agree_on(tmp_path):
    run = write_run(tmp_path / "run")
    path = run.directory / "problems" / "train.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row | {"solution": None}) + "\n" for row in rows))
    found = audited(run)
    assert {one["verdict"] for one in found} == {"confirmed"}  # they all do the same
    assert len(found) > len(rows)  # what was the reference is one of them


def test_dropped_doubts_are_not_learned(tmp_path):
    trainer = small_trainer(tmp_path / "run", spurious="drop", reference_share=0.0)
    problem = Problem("pens", "50 pens at 3 dollars: how much?", 150)
    buffer = SolutionBuffer.seeded(problem, trainer.args.rules)
    for text in ("a=50\nanswer=a+100", "a=50\nb=3\nanswer=a*b", "b=3\na=50\nanswer=b*a"):
        assert buffer.consider(trace(text)).is_new
    targets = trainer.kept_targets.of(problem, buffer, [], 0)
    assert [target.kind for target in targets.targets] == ["fully_correct"] * 2


def test_a_setting_that_the_rule_does_not_know_is_refused():
    with pytest.raises(ConfigError, match="spurious is 'often', expected one of keep, flag, drop"):
        _ = Rules(added=(("spurious", "often"),)).sequence
