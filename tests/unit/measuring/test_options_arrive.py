"""Every option of `partway evaluate`, set to something else than its default, is seen where it matters."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner
from training_cases import WatchedEngine, apples, tiny_gpt_neo

from partway import registry
from partway.cli import app
from partway.errors import ModelError
from partway.evaluation import EvaluationPlan
from partway.measuring.few_shot import few_shot_prompt
from partway.models.engine import SamplingSettings
from partway.problem import Problem
from partway.problems import write_problems

PROBLEMS = apples(4)
SHOWN = apples(3, seed=1)
DRAWN = {
    "--samples": 3,
    "--k": "2,3",
    "--temperature": 0.55,
    "--top-p": 0.9,
    "--top-k": 7,
    "--max-completion-length": 11,
    "--limit": 2,
    "--seed": 5,
    "--name": "mine",
    "--metrics": f"{__name__}:half",
}
LOADED = {"--dtype": "bfloat16", "--device": "meta", "--chat-template": "none", "--state": "set"}
SHOTS = {"--few-shot": "shown.jsonl", "--shots": 2}
SERVED = {"--engine": "http://a, http://b", "--concurrency": 3, "--extra-body": '{"min_p": 0.1}', **SHOTS}
ASKED = {"--tokenizer": "./asked", "--chat-template": "none"}
COLUMNS = {"--columns": "question=asked,answer=goal,solution=program"}
ELSEWHERE = {  # what tests/end_to_end/test_evaluate_command.py follows
    *("--problems", "--out", "--overwrite", "--temperatures", "--chance", "--compare", "--json"),
}


def half(problem: Problem, samples: Any) -> float:
    """A metric of one's own."""
    return 0.5


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder with problems to solve, and others to show, from which the command is called."""
    write_problems(tmp_path / "test.jsonl", PROBLEMS)
    write_problems(tmp_path / "shown.jsonl", SHOWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluate(options: dict[str, Any], *words: str, problems: str = "test.jsonl") -> None:
    said = [str(word) for option in options.items() for word in option]
    command = ["--quiet", "evaluate", "model", "--problems", problems, "--out", "out", *said, *words]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output


@pytest.fixture
def engine(monkeypatch) -> WatchedEngine:
    """Draws whatever is asked of any model."""
    engine = WatchedEngine()
    opened = nullcontext((engine, "watched"))
    monkeypatch.setattr("partway.measuring.commands.opened_engine", lambda *_: opened)
    return engine


def test_samples_are_drawn_as_the_options_say(here, engine):
    evaluate(DRAWN, "--counts")
    low, high = engine.calls
    assert [request.count for request in low.requests] == [1, 1]
    assert [(one.problem.id, one.count) for one in high.requests] == [(p.id, 3) for p in PROBLEMS[:2]]
    assert low.settings == SamplingSettings(0.2, 0.9, 7, 11)
    assert high.settings == SamplingSettings(0.55, 0.9, 7, 11)
    assert [low.seed, high.seed] == [phase.seed for phase in EvaluationPlan(seed=5).phases]
    summary = json.loads((here / "out" / "mine.json").read_text())
    assert (summary["ks"], summary["metrics"]["half"]["value"]) == ([2, 3], 0.5)
    rows = [json.loads(line) for line in (here / "out" / "mine.jsonl").read_text().splitlines()]
    assert sum(row["count"] for row in rows) == 2 * 3


def test_answers_are_judged_in_the_language_of_the_options(here, engine):
    write_problems(here / "other.jsonl", [Problem(one.id, one.question, one.answer) for one in PROBLEMS])
    evaluate({"--samples": 20, "--name": "usual"}, problems="other.jsonl")
    evaluate({"--samples": 20, "--name": "other", "--answer-variable": "t9"}, problems="other.jsonl")
    usual, other = (json.loads((here / "out" / f"{name}.json").read_text()) for name in ("usual", "other"))
    assert usual["metrics"]["pass@20"]["value"] == 1
    assert other["metrics"]["pass@20"]["value"] == 0, "what is drawn sets it to 1, if at all"


def test_problems_are_read_from_the_columns_of_the_options(here, engine):
    row = {
        "asked": PROBLEMS[0].question,
        "goal": str(PROBLEMS[0].answer),
        "program": PROBLEMS[0].reference.text,
    }
    (here / "rows.jsonl").write_text(json.dumps(row))
    evaluate(COLUMNS, problems="rows.jsonl")
    assert engine.calls[0].requests[0].problem.question == PROBLEMS[0].question


@pytest.fixture
def loaded(monkeypatch) -> dict[str, Any]:
    """What a model is loaded and asked with; nothing is drawn from it."""
    found: dict[str, Any] = {}

    def load(name: str, **options: Any) -> Any:
        found.update(name=name, **options)
        return tiny_gpt_neo(PROBLEMS)

    def engine(model: Any, **options: Any) -> None:
        found.update(question=model.codec.question, of_engine=options["language"])
        raise ModelError("that was all")

    monkeypatch.setattr("partway.models.loading.load_model", load)
    monkeypatch.setattr("partway.sampling.local_engine.LocalEngine", engine)
    return found


def test_a_model_is_loaded_as_the_options_say(here, loaded):
    with pytest.raises(ModelError, match="that was all"):
        evaluate(LOADED | {"--chance": "shown.jsonl"})
    assert (loaded["name"], loaded["dtype"], loaded["device"]) == ("model", "bfloat16", "meta")
    asking = loaded["asking"]
    assert (asking.chat_template, asking.language.state) == ("none", "set")
    assert loaded["of_engine"].state == "set"


def test_chance_alone_has_no_weights_of_any_type(here):
    words = ["--problems", "test.jsonl", "--chance", "shown.jsonl", "--dtype", "bfloat16"]
    result = CliRunner().invoke(app, ["--quiet", "evaluate", *words])
    assert (result.exit_code, "--dtype needs MODEL" in result.output) == (2, True)


def test_a_model_is_shown_as_many_examples_as_the_options_say(here, loaded):
    with pytest.raises(ModelError, match="that was all"):
        evaluate(SHOTS)
    assert loaded["question"] == few_shot_prompt(SHOWN, shots=2)


@pytest.fixture
def served(monkeypatch) -> dict[str, Any]:
    """What servers are asked with."""
    found: dict[str, Any] = {}
    part = registry.part

    def http(urls: list[str], codec: Any, **options: Any) -> None:
        found.update(urls=urls, codec=codec, **options)
        raise ModelError("that was all")

    monkeypatch.setattr(
        registry, "part", lambda *names, **more: http if "http" in names else part(*names, **more)
    )
    return found


def test_servers_are_asked_as_the_options_say(here, served):
    with pytest.raises(ModelError, match="that was all"):
        evaluate(SERVED, "--state", "set")
    assert (served["urls"], served["model"]) == (["http://a", "http://b"], "model")
    assert (served["concurrency"], served["extra_body"]) == (3, {"min_p": 0.1})
    assert served["language"].state == "set"
    assert served["prompt"].text("?").count("\n# Tom has") == 2, "two examples are shown"


def test_servers_are_asked_by_the_tokenizer_of_the_options(here, served, monkeypatch):
    asked = {}

    def load(name: str, asking: Any) -> SimpleNamespace:
        asked.update(name=name, chat_template=asking.chat_template)
        return SimpleNamespace()

    monkeypatch.setattr("partway.models.loading.load_codec", load)
    with pytest.raises(ModelError, match="that was all"):
        evaluate({"--engine": "http://a", **ASKED})
    assert asked == {"name": "./asked", "chat_template": "none"}


def test_every_option_is_followed():
    command = app.get_command(click.Context(app), "evaluate")
    followed = {*DRAWN, *LOADED, *SERVED, *ASKED, *COLUMNS, "--counts", *ELSEWHERE}
    options = {
        max(one.opts, key=len) for one in command.params if isinstance(one, click.Option) and one.expose_value
    }
    assert options - followed == set(), "an option needs a test here"
