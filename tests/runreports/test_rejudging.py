"""The samples of a run, judged by other rules than its own."""

import json
from collections import Counter

import pytest
from click.testing import CliRunner
from report_cases import write_run

from partway import Problem
from partway.buffer import Verdict, seed_buffers, write_buffers
from partway.cli import app
from partway.errors import ConfigError, RunError
from partway.runs import Run
from partway.sample import Sample
from runreports.rejudging import parse_changes, rejudge

# Two of its values are equal, so a set of them has fewer.
TEA = Problem("tea", "2 cups of 2 ml and 5 ml?", 9, "n0 = 2\nn1 = 2\nn2 = 5\nt0 = n0 * n1\nanswer = t0 + n2")


def run_of(directory, *samples: Sample, **settings) -> Run:
    run = Run(directory)
    run.write_config(settings)
    run.write_problems("train", [TEA])
    run.append_samples(samples)
    return run


def sample(text: str, verdict: Verdict, *, count: int = 1, finished: bool = True) -> Sample:
    return Sample("tea", "", text, count, finished, step=1, verdict=verdict)


def test_by_its_own_rules_every_sample_is_judged_as_it_was(tmp_path):
    for name, settings in {"plain": {}, "fcs": {"self_sampling": "fcs"}}.items():
        run = write_run(tmp_path / name, **settings)
        found = rejudge(run, {})
        assert +Counter(found.verdicts) == Counter(one.verdict for one in run.samples())
        kept = run.buffers().values()
        assert found.per_problem["fully_correct"] == sum(len(b.fully_correct) for b in kept) / 6 > 1
        assert found.per_problem["partially_correct"] == sum(len(b.partially_correct) for b in kept) / 6


@pytest.mark.parametrize(
    ("changes", "verdicts"),
    [
        ("state=multiset", {Verdict.KNOWN_PARTIALLY_CORRECT: 1, Verdict.NEW_PARTIALLY_CORRECT: 1}),
        ("state=set", {Verdict.NEW_PARTIALLY_CORRECT: 1, Verdict.TOO_LONG: 1}),
        ("dedup=alpha", {Verdict.KNOWN_PARTIALLY_CORRECT: 2}),
        ("dedup=spelling", {Verdict.KNOWN_PARTIALLY_CORRECT: 2}),
        ("self_sampling=fcs", {Verdict.INCORRECT: 2}),
        ("state=set,length_tolerance=1", {Verdict.NEW_PARTIALLY_CORRECT: 2}),
    ],
)
def test_each_setting_changes_what_becomes_of_a_sample(tmp_path, changes, verdicts):
    once = "n0 = 2\nn2 = 5\nanswer = n0\n"  # {2, 5} is a state of the reference as a set only
    renamed = "a = 2\nb = 2\nanswer = a\n"  # {2, 2}, as a set one step would do for it
    run = run_of(tmp_path, *(sample(text, Verdict.INCORRECT) for text in (once, renamed)))
    found = rejudge(run, parse_changes(changes))
    assert +Counter(found.verdicts) == verdicts
    assert found.per_problem["partially_correct"] == verdicts.get(Verdict.NEW_PARTIALLY_CORRECT, 0)


def test_equal_samples_are_counted_and_a_line_cut_off_is_not_run(tmp_path):
    right = "n0 = 2\nn1 = 2\nn2 = 5\nanswer = n0 * n1 + n2\n"
    run = run_of(
        tmp_path,
        sample(right, Verdict.NEW_FULLY_CORRECT, count=3),
        sample("answer = 9", Verdict.NOT_EXECUTABLE, finished=False),  # perhaps to become 90
    )
    assert +Counter(rejudge(run, {}).verdicts) == {
        Verdict.NEW_FULLY_CORRECT: 1,
        Verdict.KNOWN_FULLY_CORRECT: 2,
        Verdict.NOT_EXECUTABLE: 1,
    }


def test_what_a_run_began_with_is_known_to_the_other_rules_too(tmp_path):
    found = "a = 2\nb = 5\nanswer = a * a + b"
    buffers = seed_buffers([Problem("tea", TEA.question, 9, found)])
    with (tmp_path / "begin.jsonl").open("w") as stream:
        write_buffers(stream, buffers.values())
    begun = {"buffer_file": str(tmp_path / "begin.jsonl")}
    run = run_of(tmp_path / "run", sample(f"{found}\n", Verdict.KNOWN_FULLY_CORRECT), **begun)
    assert rejudge(run, {"dedup": "alpha"}).verdicts[Verdict.KNOWN_FULLY_CORRECT] == 1
    (tmp_path / "begin.jsonl").unlink()
    with pytest.raises(RunError, match=r"began with the solutions in .*begin.jsonl, which is not there"):
        rejudge(run, {})


def test_the_command_shows_a_column_for_each_set_of_rules(tmp_path):
    run = write_run(tmp_path / "run")
    command = ["buffer", "rejudge", str(run.directory), "dedup=alpha,dead_ends=drop", "state=set"]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    heading, *rows = result.stdout.splitlines()
    assert heading.startswith("48 self-samples of ")
    assert "dead_ends:" in result.output
    [counts] = [row.split()[-3:] for row in rows if row.startswith("new partially correct")]
    rejudged = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)["rejudged"]
    assert counts == [str(one["verdicts"]["new_partially_correct"]) for one in rejudged]
    assert [one["settings"] for one in rejudged] == [
        {},
        {"dedup": "alpha", "dead_ends": "drop"},
        {"state": "set"},
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("state", "'state': expected KEY=VALUE"),
        ("state=sett", "state is 'sett', expected one of multiset, set, strict; did you mean 'set'"),
        ("learning_rate=1", "unknown key 'learning_rate'"),
        ("length_tolerance=-1", "length_tolerance is -1, expected at least 0"),
        ("max_solutions_per_problem=0", "expected at least 1"),
        ("self_sampling=none", "expected one of fcs, fcs[+]pcs"),
    ],
)
def test_a_setting_that_judges_nothing_is_refused(text, told):
    with pytest.raises(ConfigError, match=told):
        parse_changes(text)


def test_a_run_without_samples_or_without_their_problems_is_refused(tmp_path):
    with pytest.raises(RunError, match="no self-samples to judge"):
        rejudge(write_run(tmp_path / "mle", self_sampling="none"), {})
    run = run_of(
        tmp_path / "run", Sample("coffee", "", "answer = 1\n", 1, True, step=1, verdict=Verdict.INCORRECT)
    )
    with pytest.raises(RunError, match="there is no problem 'coffee'"):
        rejudge(run, {})
