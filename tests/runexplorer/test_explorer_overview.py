"""What the explorer opens on."""

import pytest
from explorer_cases import Writer, finished_run
from report_cases import write_run

from partway.buffer import Rules, seed_buffers
from partway.problem import Problem
from runexplorer.explorer import Explorer
from runreports.writing import read_study, write_explorer

RIGHT = {"eggs": [("answer = 4\n", 6)], "cats": [("answer = 0\n", 6)]}
LUCK = Problem("luck", "50 pens in 5 boxes. How many in one?", 10, "n0 = 50\nn1 = 5\nanswer = n0 / n1")


def overview(run):
    return Explorer(run).facts()["overview"]


def test_curves_are_those_that_were_logged(tmp_path):
    run = write_run(tmp_path / "run")
    shown = {chart["title"]: chart["series"] for chart in overview(run)["charts"]}
    logged = [(line["step"], line["loss"]) for line in run.metrics() if "loss" in line]
    assert shown["Loss"][0]["points"] == logged
    passes = [(line["step"], line["eval_pass@6"]) for line in run.metrics() if "eval_pass@6" in line]
    assert shown["Problems solved (dev)"][-1] == {"name": "pass@6", "hue": "green", "points": passes}


def test_verdicts_over_time_count_every_self_sample(tmp_path):
    run = write_run(tmp_path / "run")
    verdicts = overview(run)["verdicts"]
    assert sum(verdicts["counts"].values()) == sum(sample.count for sample in run.samples())
    for place in range(len(verdicts["edges"]) - 1):
        assert sum(shares[place] for shares in verdicts["shares"].values()) == pytest.approx(1)


def test_problems_gained_and_lost_are_those_between_the_first_and_the_last_evaluation(tmp_path):
    writer = Writer(tmp_path)
    writer.evaluate(2, {"eggs": [("answer = 0\n", 6)], "cats": [("answer = 3\n", 6)]})
    assert overview(writer.run)["changes"] is None
    writer.evaluate(4, RIGHT)
    changes = overview(writer.run)["changes"]
    assert [row["id"] for row in changes["gained"]] == ["eggs"]
    assert [row["id"] for row in changes["lost"]] == ["cats"]
    assert (changes["first"], changes["last"]) == ("2", "4")


def test_up_to_three_problems_are_worth_looking_at_each_for_a_reason_of_its_own(tmp_path):
    worth = overview(finished_run(tmp_path))["worth"]
    assert [row["key"] for row in worth] == ["train/1", "dev/1"]
    assert worth[0]["why"] == "the model found 1 way of its own to solve it"
    assert worth[1]["why"] == "solved by 5 of 6 samples only"


def test_a_young_run_has_an_overview_of_little(tmp_path):
    shown = overview(Writer(tmp_path).run)
    assert (shown["charts"], shown["verdicts"], shown["changes"]) == ([], None, None)


def test_what_is_right_by_luck_is_counted(tmp_path):
    writer = Writer(tmp_path, train=[LUCK], config={"spurious": "flag"})
    writer.buffers = seed_buffers([LUCK], Rules.of({"spurious": "flag"}))
    writer.sample([(1, "luck", "", "n0 = 5\nanswer = n0 + 5\n", -1.0)])
    writer.save("final")
    explorer = Explorer(writer.run)
    assert explorer.facts()["totals"]["doubted"] == 1
    assert [entry.standing.kept.doubted for entry in explorer.index.entries if entry.has_buffer] == [1]


def test_too_many_problems_get_no_copy_beside_a_report(tmp_path, monkeypatch):
    study = read_study([write_run(tmp_path / "run")])
    assert write_explorer(study, tmp_path / "whole")
    monkeypatch.setattr("runexplorer.export.MOST_IN_REPORT", 3)
    assert not write_explorer(study, tmp_path / "explorer")
    assert not (tmp_path / "explorer").exists()
