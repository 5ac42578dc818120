"""`python -m benchmarks growth` lets one thing grow at a time, and measures no row twice."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from benchmarks import growth, growth_row
from benchmarks.__main__ import app
from benchmarks.growth import Setting

FOUND = {
    "seconds": 1.0,
    "exploring": 0.5,
    "learning": 0.25,
    "start_seconds": 2.0,
    "megabytes": 700.0,
    "tokens_learned": 90,
}


def grow(*words):
    done = CliRunner().invoke(app, ["--quiet", "growth", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_one_thing_grows_and_the_smallest_row_is_measured_once():
    rows = growth.settings(list(growth.AXES), None)
    assert len(rows) == len(set(rows)) == 1 + sum(len(values) - 1 for values in growth.AXES.values())
    plain = Setting()
    for row in rows:
        assert sum(getattr(row, axis) != getattr(plain, axis) for axis in growth.AXES) <= 1


def test_rows_in_the_file_are_not_measured_again(tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(growth, "measured", lambda setting, seconds: measured.append(setting) or FOUND)
    words = ("--of", "solutions", "--up-to", "4", "--out", str(tmp_path / "rows.jsonl"), "--json")
    first = grow(*words)
    assert measured == [Setting(), Setting(solutions=4)]
    assert grow(*words) == first
    assert len(measured) == 2
    assert json.loads(first) == {"solutions": [{"solutions": 1, **FOUND}, {"solutions": 4, **FOUND}]}


def test_a_row_that_takes_too_long_is_given_up():
    assert growth.measured(Setting(), seconds=0) == {"refused": "not done within 0 seconds"}


def test_the_table_says_why_a_row_is_missing(monkeypatch):
    monkeypatch.setattr(growth, "measured", lambda setting, seconds: {"refused": "too long"})
    assert "too long" in grow("--of", "processes", "--up-to", "1")


@pytest.mark.slow
def test_a_row_learns_from_as_many_solutions_as_it_says(tmp_path):
    setting = replace(Setting(), problems=4, batch=4, steps=2)
    one = growth_row.measure(setting, str(tmp_path / "one"))
    four = growth_row.measure(replace(setting, solutions=4), str(tmp_path / "four"))
    assert four["tokens_learned"] == 4 * one["tokens_learned"]
    assert one["seconds"] > max(one["exploring"], one["learning"]) > 0
