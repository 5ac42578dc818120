"""Options declared as fields of a dataclass reach the command typed, defaulted and in order."""

from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from partway.cli import app
from partway.cli.options import given, length_for, takes
from partway.cli.sample import SampleOptions
from partway.errors import ProblemError
from partway.measuring.engine_options import EvaluateOptions
from partway.runs import Run


@dataclass(frozen=True)
class Pie:
    name: str = given(click.argument("name"))
    pieces: int = given(click.option("--pieces", default=8, show_default=True, help="How many."))
    hot: bool = given(click.option("--hot", is_flag=True, help="Not cold."))


@click.command()
@takes(Pie)
def bake(**options):
    click.echo(repr(Pie(**options)))


def test_a_field_is_an_option():
    assert CliRunner().invoke(bake, ["apple", "--hot"]).output == "Pie(name='apple', pieces=8, hot=True)\n"
    shown = CliRunner().invoke(bake, ["--help"]).output
    assert shown.index("--pieces") < shown.index("--hot")


def test_every_option_of_the_commands_is_a_field_or_says_how_to_print():
    for name, options, others in (
        ("evaluate", EvaluateOptions, {"compare", "as_json"}),
        ("sample", SampleOptions, {"show", "as_json"}),
    ):
        command = app.get_command(click.Context(app), name)
        fields = options.__dataclass_fields__
        shown = {parameter.name for parameter in command.params if parameter.expose_value}
        assert shown == fields.keys() | others


def invoked(*words, **settings):
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=True, **settings)


@pytest.mark.parametrize("command", ["trace", "data check", "sample", "evaluate"])
def test_every_setting_of_a_language_is_an_option_of_the_commands_that_read_programs(command):
    shown = invoked(*command.split(), "--help").output
    settings = ["language", "answer-variable", "state", "checker", "checker-rel-tol", "solution-end"]
    assert [name for name in settings if f"--{name} VALUE" not in shown] == []


def test_settings_are_spelled_as_in_training_too(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "A third of 10?", "answer": 3.3, "solution": "result = 10 / 3"}')
    words = ["data", "check", rows, "--answer_variable", "result", "--checker", "close"]
    assert isinstance(invoked(*words).exception, ProblemError)
    assert invoked(*words, "--checker_rel_tol", "0.1").exit_code == 0


def test_a_setting_that_the_language_lacks_or_that_has_no_such_value_is_refused(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("answer = 1")
    wrong = invoked("trace", program, "--state", "sett").exception
    assert str(wrong) == "state is 'sett', expected one of multiset, set, strict; did you mean 'set'?"
    lacking = invoked("trace", program, "--language", "python-tests", "--answer-variable", "x").exception
    assert "unknown key 'answer_variable'" in str(lacking)


def test_settings_of_a_language_of_ones_own_are_given_as_pairs(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from partway.language import PythonLanguage\n"
        "@dataclass(frozen=True)\n"
        "class Mine(PythonLanguage):\n"
        "    least: int = 0\n"
        "    def is_correct(self, problem, trace):\n"
        "        return trace.has_answer and trace.answer >= self.least\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "At least 4?", "answer": 0, "solution": "answer = 5"}')
    words = ["data", "check", rows, "--language", "mine:Mine"]
    assert invoked(*words, "--language-args", "least=4").exit_code == 0
    assert isinstance(invoked(*words, "--language-args", "least=6").exception, ProblemError)
    assert "expected KEY=VALUE" in str(invoked(*words, "--language-args", "least").exception)


def test_the_longest_sample_is_that_of_the_run(tmp_path):
    assert length_for(str(tmp_path), None) == 256
    Run(tmp_path).write_config({"max_completion_length": 80})
    assert length_for(str(tmp_path), None) == 80
    assert length_for(str(tmp_path), 7) == 7
