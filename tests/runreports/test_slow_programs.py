"""Which problems' programs of a run cost most."""

import json

from click.testing import CliRunner

from partway import Problem
from partway.buffer import Verdict
from partway.cli import app
from partway.runs import Run
from partway.sample import Sample
from runreports.slow_programs import costs

QUICK, SLOW = Problem("quick", "1 and 1?", 2), Problem("slow", "How many?", 3)
FOREVER = "n = 0\nwhile True:\n    n = n + 1\nanswer = n\n"
HUGE = "answer = len([0] * (1 << 40))\n"


def run_of(directory) -> Run:
    run = Run(directory)
    run.write_config({})
    run.write_problems("train", [QUICK, SLOW])
    slow = [("slow", FOREVER, 3), ("slow", HUGE, 2), ("slow", "answer = 1\n", 1)]
    rows = [
        Sample(key, "", text, count, True, step=1, verdict=Verdict.INCORRECT)
        for key, text, count in [("quick", "answer = 2\n", 5), *slow]
    ]
    run.append_samples(rows)
    return run


def test_time_and_limits_are_counted_by_problem_and_the_slowest_program_is_named(tmp_path):
    told = []
    slow, quick = costs(run_of(tmp_path), on_progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
    assert (slow.problem, slow.drawn, dict(slow.stopped)) == ("slow", 6, {"timeout": 3, "memory": 2})
    assert slow.slowest[1] == FOREVER
    assert slow.seconds > 0.5
    assert (quick.drawn, dict(quick.stopped)) == (5, {})


def test_the_most_memory_of_a_problem_is_what_one_program_held(tmp_path):
    run = run_of(tmp_path)
    large = "n = [0] * (8 << 20)\nanswer = len(n)\n"  # 64 MB
    run.append_samples([Sample("slow", "", large, 1, True, step=1, verdict=Verdict.INCORRECT)])
    slow, quick = costs(run)
    assert 64 << 20 < slow.peak_bytes < 256 << 20
    assert quick.peak_bytes == 0, "no process was needed"


def test_the_command_shows_them(tmp_path):
    run = run_of(tmp_path)
    asked = ["buffer", "slowest", str(run.directory)]
    shown = CliRunner().invoke(app, [*asked, "--most", "1", "--json"], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.stdout)["slowest"]
    assert [(one["problem"], one["stopped"]) for one in told] == [("slow", {"timeout": 3, "memory": 2})]
    table = CliRunner().invoke(app, asked, env={"COLUMNS": "150"})
    assert "while True" in table.output
    assert "quick" in table.output
