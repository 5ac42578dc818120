"""Every option of `partway sample`, set to something else than its default, is seen where it takes effect."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from partway.cli import app
from partway.models.engine import SamplingSettings
from partway.sample import Request

OPTIONS = {
    "--samples": 3,
    "--prefix": "n0 = 4",
    "--temperature": 0.55,
    "--top-p": 0.9,
    "--top-k": 7,
    "--max-completion-length": 11,
    "--seed": 5,
    "--chat-template": "none",
    "--device": "meta",
    "--answer": 8,
    "--show": 1,
}


@pytest.fixture
def seen(monkeypatch) -> dict[str, Any]:
    """What a model is loaded with, and what it is asked."""
    found: dict[str, Any] = {}

    class Drawing:
        def __init__(self, model: str, **options: Any) -> None:
            found.update(model=model, **options)

        def complete(self, requests: list[Request], settings: SamplingSettings, seed: int) -> Any:
            found.update(requests=requests, settings=settings, seed=seed)
            return [[one.sample("total = 9\n", 2), one.sample("total = n0 * 2\n")] for one in requests]

    def load(name: str, **options: Any) -> str:
        found.update(loaded=options)
        return name

    monkeypatch.setattr("partway.models.loading.load_model", load)
    monkeypatch.setattr("partway.sampling.local_engine.LocalEngine", Drawing)
    return found


def test_a_model_is_asked_as_the_options_say(seen):
    words = [str(word) for option in OPTIONS.items() for word in option]
    command = ["--quiet", "sample", "mine", "How many?", *words, "--answer-variable", "total"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    [request] = seen["requests"]
    assert (request.problem.question, request.prefix.steps, request.count) == ("How many?", ("n0 = 4",), 3)
    assert (seen["settings"], seen["seed"]) == (SamplingSettings(0.55, 0.9, 7, 11), 5)
    asking = seen["loaded"]["asking"]
    assert (seen["model"], seen["loaded"]["device"], asking.chat_template) == ("mine", "meta", "none")
    assert asking.language.answer_variable == seen["language"].answer_variable == "total"
    assert "2 of 3, known partially correct" in result.output, "as the right one says, though it is rarer"
    assert "and 1 more, drawn 1 time; see --show" in result.output


def test_every_option_is_followed():
    command = app.get_command(click.Context(app), "sample")
    options = {
        max(one.opts, key=len) for one in command.params if isinstance(one, click.Option) and one.expose_value
    }
    assert options == {*OPTIONS, "--json"}
