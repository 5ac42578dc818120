"""The manners of the whole command line: help, mistakes, output for machines, terminals, interruptions."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from training_cases import write_inputs

from partway.cli import app, doctor, main

PARTWAY = [sys.executable, "-m", "partway"]
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3|4|9|10)[0-7]m")


def tree(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its path, groups included."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from tree(child, *path, name)


EVERY_COMMAND = dict(tree(app))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A model, problems, and a config that names them; `run` is what it trains."""
    folder = tmp_path_factory.mktemp("manners")
    write_inputs(folder, output_dir=str(folder / "run"))
    (folder / "solution.py").write_text("n0 = 4\nt0 = n0 / 0\nanswer = t0")
    trained = CliRunner().invoke(app, ["--quiet", "train", str(folder / "config.yaml")])
    assert trained.exit_code == 0, trained.output
    return folder


def test_help_comes_at_once():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-X", "importtime", "-m", "partway", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5
    imported = set(re.findall(r"\| +([\w.]+)$", result.stderr, re.M))
    assert "click" in imported
    assert not imported & {"torch", "transformers", "numpy", "rich", "yaml", "httpx"}


@pytest.mark.parametrize("path", EVERY_COMMAND, ids=" ".join)
def test_every_help_has_examples_of_that_command_and_fits_80_columns(path):
    context = click.Context(EVERY_COMMAND[path], terminal_width=80, max_content_width=80)
    shown = EVERY_COMMAND[path].get_help(context)
    examples = shown.partition("Examples:\n")[2]
    assert f"partway {' '.join(path)}".rstrip() in examples
    assert [line for line in shown.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["trian"], 2, "no command 'trian'; did you mean 'train'? (see partway --help)"),
        (["xyzzy"], 2, "no command 'xyzzy'; try one of: demo, data, train, evaluate"),
        (["data", "storyproblem"], 2, "did you mean 'storyproblems'? (see partway data --help)"),
        (["trace", "--agianst", "a", "b"], 2, "'--against'? (see partway trace --help)"),
        (["evaluate", "--temperature", "hot"], 2, "'--temperature': 'hot' is not a valid float"),
        (["trace", "--state", "bag", "x.py"], 1, "state is 'bag', expected one of multiset, set, strict"),
        (["data", "storyproblems"], 2, "Missing option '--out'"),
        (["evaluate", "model"], 2, "which problems? Add --problems FILE"),
        (["sample", "{folder}/model", "How many?", "--device", "abacus"], 1, "--device is 'abacus'"),
        (["train", "{folder}/none.yaml"], 1, "none.yaml: cannot be read"),
        (["train", "{folder}/config.yaml", "--learning_rat", "1"], 1, "did you mean 'learning_rate'?"),
        (["train", "{folder}/config.yaml", "--max_steps", "many"], 1, "max_steps is 'many', expected int"),
        (
            ["train", "{folder}/config.yaml", "--self_sampling", "pcs"],
            1,
            "expected one of none, fcs, fcs+pcs",
        ),
        (["train", "{folder}/config.yaml", "--num_generations", "0"], 1, "nothing would be sampled"),
        (["train", "{folder}/config.yaml", "--report_to", "tensorbord"], 1, "did you mean 'tensorboard'?"),
        (["train", "{folder}/config.yaml"], 1, "there is a run already; --resume"),
        (["buffer", "{folder}/model"], 1, "{folder}/model"),
        (["report", "{folder}/model"], 1, "{folder}/model"),
        (["explore", "{folder}/model"], 1, "{folder}/model"),
    ],
)
def test_a_mistake_is_one_line_before_a_model_is_loaded(partway, folder, monkeypatch, words, code, complaint):
    monkeypatch.setattr("partway.models.loading._load", None)
    found, out, err = partway(*(word.format(folder=folder) for word in words))
    assert (found, out) == (code, ""), err
    *before, last = err.splitlines()
    assert last.startswith("partway: error: ")
    assert complaint.format(folder=folder) in last
    # Whatever imports torch, which takes seconds, says so first.
    begins = ("partway: starting with ", "partway: loading ")
    assert all(line.startswith(begins) for line in before)
    assert len(before) <= 1


def test_a_mistake_in_a_file_is_told_with_the_file_that_makes_it(partway, tmp_path):
    (tmp_path / "base.yaml").write_text("learning_rat: 1\n")
    (tmp_path / "leaf.yaml").write_text("base: base.yaml\nmax_steps: 3\n")
    told = (
        f"partway: error: {tmp_path / 'base.yaml'}: unknown key 'learning_rat'; did you mean 'learning_rate'?"
    )
    code, out, err = partway("train", tmp_path / "leaf.yaml")
    assert (code, out, err.splitlines()[-1]) == (1, "", told)


def break_something(*_, **__):
    raise LookupError("a wheel\ncame off")


def test_an_unexpected_error_is_one_line_that_owns_up(partway, folder, monkeypatch):
    monkeypatch.setattr("partway.cli.trace.trace_all", itemgetter(0))
    code, out, err = partway("trace", folder / "solution.py")
    assert (code, out) == (1, "")
    told = "itemgetter expected 1 argument, got 2; this is a bug in partway, please report what --debug shows"
    assert err == f"partway: error: TypeError: {told}\n"


def test_a_package_that_is_not_installed_is_named(partway, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "partway.cli.trace_tables", None)  # so that it cannot be imported
    told = "there is no module partway.cli.trace_tables; install it, or put its folder in PYTHONPATH"
    assert partway("trace", folder / "solution.py") == (1, "", f"partway: error: {told}\n")


def test_an_error_in_code_of_the_users_own_names_the_line(partway, folder, monkeypatch):
    monkeypatch.setattr("partway.cli.trace.trace_all", break_something)
    code, out, err = partway("trace", folder / "solution.py")
    assert (code, out) == (1, "")
    place = f"{__file__}:{break_something.__code__.co_firstlineno + 1}, in break_something"
    assert err.startswith(
        f"partway: error: {place}: LookupError: a wheel came off; this is not partway's code"
    )


@pytest.mark.parametrize("words", [("--debug", "trace"), ("trace", "--debug")])
def test_debug_shows_the_traceback(folder, monkeypatch, words):
    monkeypatch.setattr("partway.cli.trace.trace_all", break_something)
    monkeypatch.setattr(sys, "argv", ["partway", *words, str(folder / "solution.py")])
    with pytest.raises(LookupError, match="a wheel"):
        main()


FOR_MACHINES = {
    "trace": ["{folder}/solution.py"],
    "data storyproblems": ["--train", "3", "--dev", "1", "--test", "1", "--out", "{new}"],
    "data check": ["{folder}/train.jsonl"],
    "train": ["{folder}/config.yaml", "--output_dir", "{new}"],
    "evaluate": ["{folder}/run", "--samples", "2", "--out", "{new}"],
    "sample": ["{folder}/run", "How many?", "-n", "2", "--max-completion-length", "4"],
    "buffer show": ["{folder}/run"],
    "buffer export": ["{folder}/run", "{folder}/solutions.jsonl"],
    "buffer preferences": ["{folder}/run", "{folder}/pairs.jsonl"],
    "buffer rejudge": ["{folder}/run", "state=set"],
    "buffer slowest": ["{folder}/run"],
    "buffer import": ["{folder}/run", "{new}"],
    "buffer audit": ["{folder}/run"],
    "report": ["{folder}/run", "--out", "{new}"],
    "doctor": [],
}
TESTED_ELSEWHERE = {
    *("data gsm8k", "data mathqa"),  # test_data_command.py
    "data sql",  # test_sql_commands.py
    "demo",  # test_demo_command.py
    "compare",  # test_compare_command.py
}


def test_every_command_with_json_is_tested():
    offered = {
        " ".join(path)
        for path, command in EVERY_COMMAND.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert offered == {*FOR_MACHINES, *TESTED_ELSEWHERE}


@pytest.mark.parametrize("name", FOR_MACHINES)
def test_quiet_and_json_print_one_document_and_nothing_else(partway, folder, tmp_path, name, unrendered):
    words = [word.format(folder=folder, new=tmp_path / "new") for word in FOR_MACHINES[name]]
    code, out, err = partway("--quiet", *name.split(), *words, "--json")
    assert (code, err) == (0, ""), err
    assert isinstance(json.loads(out), dict)


NOT_SAID = ("doctor", "buffer preferences")  # one is slow, the other has nothing to write here


@pytest.mark.parametrize("name", [name for name in FOR_MACHINES if name not in NOT_SAID])
def test_every_command_ends_with_the_next_one(partway, folder, tmp_path, name, unrendered):
    words = [word.format(folder=folder, new=tmp_path / "new") for word in FOR_MACHINES[name]]
    code, _, err = partway(*name.split(), *words)
    assert code == 0, err
    said = err.splitlines()[-1].removeprefix("partway: next: ")
    if name == "buffer export":  # for another program
        assert said.startswith("datasets.load_dataset(")
    else:
        assert {one.split()[1] for one in said.split(", or ")} <= {*app.list_commands(click.Context(app))}


def test_progress_goes_to_standard_error(partway, folder, tmp_path):
    code, out, err = partway("evaluate", folder / "run", "--samples", 2, "--out", tmp_path, "--json")
    assert code == 0, err
    assert json.loads(out)["problems"] == 2
    assert "evaluating: 6 of 6 samples" in err
    assert "\x1b" not in err


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *words: object, **environment: str) -> None:
        self.seen = ""
        self.ours, theirs = os.openpty()
        unwanted = (
            "NO_COLOR",
            "CI",
            "COVERAGE_PROCESS_CONFIG",
        )  # measured elsewhere; here it only takes time
        given = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.process = subprocess.Popen(
            [*PARTWAY, *map(str, words)],
            **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
            env={**given, "TERM": "xterm-256color", "COLUMNS": "120", **environment},
        )
        os.close(theirs)

    def read(self, until: str | None = None) -> str:
        """What it shows up to `until`, or to its end."""
        while until is None or until not in self.seen:
            try:
                news = os.read(self.ours, 65536)
            except OSError:  # how Linux says that the other end is closed
                news = b""
            if not news:
                assert until is None, self.seen
                break
            self.seen += news.decode(errors="replace")
        return self.seen

    def end(self) -> int:
        self.read()
        os.close(self.ours)
        return self.process.wait(timeout=60)


def test_a_terminal_has_colours_unless_they_are_unwanted(folder):
    coloured = Terminal("trace", folder / "solution.py")
    plain = Terminal("trace", folder / "solution.py", NO_COLOR="1")
    assert (coloured.end(), plain.end()) == (0, 0)
    assert "ZeroDivisionError" in coloured.seen
    assert COLOUR.search(coloured.seen)
    assert "ZeroDivisionError" in plain.seen
    assert not COLOUR.search(plain.seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["sample", "{folder}/model", "How many?", "-n", "100000"], "sampling from"),
        (
            ["evaluate", "{folder}/model", "--problems", "{folder}/dev.jsonl", "--samples", "100000"],
            "evaluating",
        ),
        (["demo", "--quick"], "seed 0"),
    ],
)
def test_ctrl_c_ends_with_one_line(folder, tmp_path, monkeypatch, words, shown):
    monkeypatch.chdir(tmp_path)
    terminal = Terminal(*(word.format(folder=folder) for word in words))
    terminal.read(until=shown)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert terminal.seen.endswith("partway: interrupted\r\n")
    assert "Traceback" not in terminal.seen
    assert terminal.seen.count("\x1b[?25l") == terminal.seen.count("\x1b[?25h"), "the cursor is back"


SWALLOWING = """
import signal
try:
    signal.raise_signal(signal.SIGINT)
except BaseException:
    print("swallowed")
"""
IMPORTING = """
from partway.cli import app, main

def invoke(context):
    print("importing")
    import library
    print("imported")

app.invoke = invoke
main()
"""


def test_ctrl_c_is_not_lost_in_an_import_that_would_swallow_it(tmp_path):
    (tmp_path / "library.py").write_text(SWALLOWING)
    (tmp_path / "registry.py").write_text(IMPORTING)
    command = [sys.executable, tmp_path / "registry.py", "doctor"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert found.returncode == 130
    assert (found.stdout, found.stderr) == ("importing\n", "\npartway: interrupted\n")


@pytest.mark.slow
def test_a_terminated_demo_leaves_no_process_behind(tmp_path):
    terminal = Terminal("demo", "--quick", "--jobs", 1, "--out", tmp_path)
    terminal.read(until="seed 0, training")
    terminal.process.terminate()
    assert terminal.end() == 143, "which reads until nobody holds the terminal any more"
    assert "Traceback" not in terminal.seen


def test_ctrl_c_while_input_is_awaited():
    with subprocess.Popen([*PARTWAY, "trace", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        os.write(process.stdin.fileno(), b"\n" * 100_000)  # more than a pipe holds: it has begun to read
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1].split() == [b"partway:", b"interrupted"]
    assert process.returncode == 130


@pytest.mark.parametrize(
    "words", [["trace", "{folder}/solution.py"], ["data", "check", "{folder}/dev.jsonl"]]
)
def test_a_closed_pipe_is_no_error(folder, words):
    command = [*PARTWAY, *(word.format(folder=folder) for word in words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("partway tr", {"trace", "train"}),
        ("partway data st", {"storyproblems"}),
        ("partway evaluate --te", {"--temperature", "--temperatures"}),
        (
            "partway train config.yaml --lora_",
            {"--lora_r", "--lora_alpha", "--lora_target_modules"},
        ),
        ("partway train config.yaml --gradient_acc", {"--gradient_accumulation_steps"}),
        ("partway train config.yaml --self_sampling f", {"fcs", "fcs+pcs"}),
        ("partway train config.yaml --learn_question t", {"true"}),
        ("partway train --self_sampling f", {"fcs", "fcs+pcs"}),
    ],
)
def test_the_shell_completes_commands_and_options(words, offered, monkeypatch, partway):
    monkeypatch.setenv("_PARTWAY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    code, out, _ = partway()
    assert code == 0
    assert {line.partition(",")[2] for line in out.splitlines()} == offered


def test_help_tells_how_to_switch_completion_on():
    shown = " ".join(app.get_help(click.Context(app)).split())
    assert 'eval "$(_PARTWAY_COMPLETE=bash_source partway)"' in shown


def test_the_doctor_refuses_an_installation_without_torch(partway, monkeypatch):
    monkeypatch.setattr(doctor, "version_of", lambda name: None if name == "torch" else "1.0")
    code, out, _ = partway("doctor", "--json")
    assert code == 1
    assert json.loads(out)["problems"] == ["torch is missing; try: pip install torch"]
