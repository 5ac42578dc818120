"""Options are declared once, and reach the command typed, defaulted and in order."""

import ast
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from partway import registry
from partway.cli import app
from partway.cli.options import declared, given, length_for, patience, takes
from partway.cli.sample import SampleOptions
from partway.cli.train import command as train
from partway.cli.training_keys import language_schemas, training_keys
from partway.errors import ProblemError
from partway.language.named import settings_of
from partway.measuring.engine_options import EvaluateOptions
from partway.runs import Run, language_for


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


WITH_DATA = pytest.mark.skipif(find_spec("partway.data") is None, reason="the folder was taken away")


@pytest.mark.parametrize(
    "command", ["trace", pytest.param("data check", marks=WITH_DATA), "sample", "evaluate"]
)
def test_every_setting_of_a_language_is_an_option_of_the_commands_that_read_programs(command):
    shown = invoked(*command.split(), "--help").output
    settings = ["language", "answer-variable", "state", "checker", "checker-rel-tol", "solution-end"]
    assert [name for name in settings if f"--{name} VALUE" not in shown] == []


@WITH_DATA
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
    assert "answer_variable is a setting of python and python-written" in str(lacking)


@WITH_DATA
def test_settings_of_a_language_of_ones_own_are_given_as_pairs(tmp_path, monkeypatch):
    (tmp_path / "least_language.py").write_text(
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
    words = ["data", "check", rows, "--language", "least_language:Mine"]
    assert invoked(*words, "--language-args", "least=4").exit_code == 0
    assert isinstance(invoked(*words, "--language-args", "least=6").exception, ProblemError)
    assert "expected KEY=VALUE" in str(invoked(*words, "--language-args", "least").exception)


def test_the_longest_sample_is_that_of_the_run(tmp_path):
    assert length_for(str(tmp_path), None) == 256
    Run(tmp_path).write_config({"max_completion_length": 80})
    assert length_for(str(tmp_path), None) == 80
    assert length_for(str(tmp_path), 7) == 7


def test_a_checkpoint_is_asked_in_the_language_of_its_run(tmp_path, monkeypatch):
    for folder in ("run/checkpoint-8", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    run = Run(tmp_path / "run")
    run.write_config({"state": "set", "max_completion_length": 80})
    for model in (run.directory, run.checkpoint(8)):
        assert settings_of(language_for(str(model)))["language_args"]["state"] == "set"
        assert length_for(str(model), None) == 80
    monkeypatch.chdir(run.directory)
    for model in (None, "smollm2", str(tmp_path / "elsewhere")):  # none of them lies in that run
        assert Run.around(model) is None
        assert length_for(model, None) == 256


def test_train_has_no_option_by_the_name_of_a_setting():
    options = {name.removeprefix("--").replace("-", "_") for one in train.params for name in one.opts}
    assert not options & set(training_keys()) - {"resume"}, "the value of such a setting could not be given"


def test_each_option_is_declared_once():
    source = Path(__file__).parents[3] / "src"
    packages = ("partway", "mathdata", "runexplorer", "runreports")
    files = [file for one in packages for file in (source / one).rglob("*.py")]
    calls = [
        node
        for file in files
        if "demo" not in file.parts
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("declared", "option", "click.option")
    ]
    names = [one.value for call in calls for one in call.args if isinstance(one, ast.Constant)]
    counts = Counter(name for name in names if name.startswith("--"))
    assert len(counts) > 40
    assert [name for name, count in counts.items() if count > 1] == []


@click.command()
@click.argument("model", required=False)
@declared("--server")
@declared("--key", needs="server")
@declared("--chance", is_flag=True, not_with=["server", "model"])
def drawn(**options):
    click.echo("drawn")


def test_an_option_says_what_it_needs_and_what_it_does_not_go_with():
    for words, told in (
        (["--key", "k"], "--key needs --server"),
        (["--chance", "--server", "s"], "--chance and --server do not go together; leave one out"),
        (["m", "--chance"], "--chance and MODEL do not go together; leave one out"),
    ):
        refused = CliRunner().invoke(drawn, words)
        assert (refused.exit_code, told in refused.output) == (2, True)
    for words in (["--key", "k", "--server", "s"], ["--chance"], ["m"]):
        assert CliRunner().invoke(drawn, words).output == "drawn\n"


def test_help_begins_with_four_commands_and_lists_the_others_in_sections():
    shown = CliRunner().invoke(app, ["--help"]).output
    begin, *others = shown.partition("To begin with:")[2].partition("Options:")[0].split("\n\n")
    listed = [line.split()[0] for line in begin.strip("\n").splitlines() if line[2] != " "]
    there = app.list_commands(click.Context(app))
    assert listed == [name for name in ("demo", "data", "train", "evaluate") if name in there]
    titles = [section.splitlines()[0] for section in others if section.strip()]
    sections = ["Look at a run:", "Ask a model, run a program:", "Compare and share:", "More:"]
    assert titles == [title for title in sections if title in titles]
    assert {"Ask a model, run a program:", "More:"} <= {*titles}
    assert CliRunner().invoke(app, []).output == shown


def test_a_server_is_asked_by_the_tokenizer_of_a_model_that_has_a_name_of_ours(monkeypatch):
    models = {"ours": registry.Part("no_such_package:directory")}
    monkeypatch.setattr(registry, "parts", lambda kind: models if kind == "models" else {})

    def asked(model):
        given = dict.fromkeys(EvaluateOptions.__dataclass_fields__)
        return EvaluateOptions(**given | {"model": model, "engine": "http://localhost:1"}).asks_as

    assert (asked("ours"), asked("some-name"), asked(None)) == ("ours", None, None)


def test_a_language_that_lacks_its_package_takes_nothing_from_the_others(monkeypatch):
    parts = {"cobol": registry.Part("no_such_package.cobol:Cobol", "Not here.")}
    monkeypatch.setattr(registry, "parts", lambda kind: parts if kind == "languages" else {})
    assert [schema.__name__ for schema in language_schemas()] == ["PythonLanguage"]


class Watch:
    """A timer whose time is up when it is told so."""

    def __init__(self, seconds, act, words):
        self.seconds, self.act, self.words, self.is_going = seconds, act, words, False

    def start(self):
        self.is_going = True

    def cancel(self):
        self.is_going = False


def test_a_wait_of_two_seconds_says_what_is_done(monkeypatch, caplog):
    caplog.set_level("INFO", "partway")
    made = []
    monkeypatch.setattr("partway.cli.options.Timer", lambda *given: made.append(Watch(*given)) or made[-1])
    with patience("counting stars"):
        [watch] = made
        assert (watch.seconds, watch.is_going, caplog.text) == (2.0, True, "")
        watch.act(*watch.words)
        assert "counting stars" in caplog.text
    assert not watch.is_going
