from types import SimpleNamespace

import click
import pytest

from partway import registry
from partway.cli import app
from partway.errors import ConfigError
from partway.language import trace
from partway.registry import Part


@pytest.fixture
def a_folder(monkeypatch):
    """A folder that adds an objective, and one that was taken away."""
    here = SimpleNamespace(name="here", value="tests_folder.parts")
    gone = SimpleNamespace(name="gone", value="partway.gone.parts")
    table = SimpleNamespace(PARTS={"objectives": {"pi": Part("math:pi", "A number.")}})
    monkeypatch.setitem(__import__("sys").modules, "tests_folder.parts", table)
    monkeypatch.setattr(registry, "entry_points", lambda group: [here, gone])
    registry._found.cache_clear()
    yield
    registry._found.cache_clear()


@pytest.mark.usefixtures("a_folder")
def test_what_a_folder_adds_is_found_by_kind_and_name():
    assert registry.part("objectives", "pi") == pytest.approx(3.14159, abs=1e-5)
    assert registry.parts("rules") == {}


@pytest.mark.usefixtures("a_folder")
def test_what_the_method_has_itself_comes_first():
    assert registry.part("objectives", "pi", built_in={"pi": 3}) == 3


@pytest.mark.usefixtures("a_folder")
def test_a_folder_that_was_taken_away_is_named_by_who_looks_for_what_it_held():
    expected = r"'pie' is not one of the objectives: pi; did you mean 'pi'\?; not here: gone"
    with pytest.raises(ConfigError, match=expected):
        registry.part("objectives", "pie")
    expected = "this needs the part 'add' of the adapters, which no folder adds; not here: gone"
    with pytest.raises(ConfigError, match=expected):
        registry.part("adapters", "add")


@pytest.mark.usefixtures("a_folder")
def test_without_a_folder_that_has_views_a_notebook_shows_plain_text():
    assert registry.view("trace", trace("n0 = 1")) is None
    assert trace("n0 = 1")._repr_html_() is None


@pytest.mark.usefixtures("a_folder")
def test_a_command_that_was_taken_away_is_told_from_a_mistyped_one():
    with pytest.raises(click.UsageError, match=r"no command 'report'; try one of: .*; not here: gone"):
        app.main(["report"], standalone_mode=False)
