"""A run from elsewhere is read without running the code that its settings name."""

import re
import sys
from pathlib import Path

import pytest
from report_cases import leave_unpainted, write_run

from partway.errors import CodeError
from partway.language.named import settings_of
from partway.registry import code_refused
from partway.runs import Run, language_for
from runexplorer.explorer import Explorer

pytest.importorskip("matplotlib")

CODE = """
from pathlib import Path
from partway import PythonLanguage
Path(__file__).with_name("ran").touch()
class Mine(PythonLanguage): ...
def right(value, answer): return value == answer
"""
KEYS = {"checker": "foreign:right", "language": "foreign:Mine"}


@pytest.fixture(params=KEYS)
def foreign(request, tmp_path, monkeypatch) -> Path:
    """A run whose files name code that leaves a file when it is imported."""
    leave_unpainted(monkeypatch)
    (tmp_path / "foreign.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "foreign", raising=False)
    named = {request.param: KEYS[request.param]}
    run = write_run(tmp_path / "run", finished=False, tested=True, **named)
    for path in [*run.directory.glob("evaluations/*.json"), *run.directory.glob("checkpoint-*/buffer.jsonl")]:
        text = path.read_text()
        for key, value in named.items():
            text = re.sub(rf'"{key}": "\w+"', f'"{key}": "{value}"', text)
        path.write_text(text)
    return run.directory


def ran(run: Path) -> bool:
    return run.with_name("ran").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["report", "RUN", "--out", "OUT"],
        ["explore", "RUN", "--export", "OUT"],
        ["buffer", "show", "RUN"],
        ["browse", "RUN"],
    ],
    ids=lambda words: words[0],
)
def test_it_is_read_without_its_code_unless_the_user_trusts_it(partway, foreign, words, tmp_path):
    words = [{"RUN": foreign, "OUT": tmp_path / "out"}.get(word, word) for word in words]
    status, _, said = partway(*words)
    assert status == 0, said
    assert not ran(foreign)
    if words[0] in ("report", "explore"):
        assert said.count("code that the run names: not run, so verdicts are as recorded; --trust runs") == 1
    status, _, said = partway(*words, "--trust")
    assert (status, "not run" in said) == (0, False)
    if words[0] in ("report", "explore"):
        assert ran(foreign)


@pytest.mark.parametrize("words", ["state=set", "dedup=alpha"])
def test_what_needs_the_code_asks_for_trust(partway, foreign, words):
    status, _, said = partway("buffer", "rejudge", foreign, words)
    assert status == 1
    assert "this needs code that the run names" in said
    assert said.rstrip().endswith("--trust runs it")
    assert not ran(foreign)


def test_the_page_shows_what_was_recorded(foreign):
    with code_refused(lambda said: None):
        careful = marks(Explorer(Run.at(foreign)))
    assert not ran(foreign)
    assert careful == marks(Explorer(Run.at(foreign)))
    assert {is_right for _, is_right, _ in careful} == {True, False}


def marks(explorer: Explorer) -> list[tuple[object, ...]]:
    """What the page says of each kept solution of training and each group of samples."""
    found = []
    for problem in map(explorer.problem, explorer.index.by_key):
        kept = problem["solutions"] if "samples" in problem else []
        found += [(problem["id"], solution["is_right"], solution["kind"]) for solution in kept]
        groups = [
            group for part in ("samples", "evaluation") for group in problem.get(part, {}).get("groups", ())
        ]
        found += [(problem["id"], bool(group["is_right"]), str(group["count"])) for group in groups]
    return sorted(found)


def test_a_typed_program_asks_for_trust(foreign):
    with code_refused(lambda said: None):
        explorer = Explorer(Run.at(foreign))
        key = next(iter(explorer.index.by_key))
        with pytest.raises(CodeError, match="--trust runs it"):
            explorer.trace(key, "answer = 1")


def test_a_module_that_is_not_there_is_the_message(partway, foreign):
    foreign.with_name("foreign.py").unlink()
    status, _, said = partway("report", foreign, "--trust")
    assert status == 1
    assert re.fullmatch(
        r"partway: error: (checker|language) is 'foreign:\w+', but there is no module foreign; .*\n", said
    )


def test_whoever_trains_or_evaluates_runs_what_the_settings_name(foreign):
    settings = settings_of(language_for(str(foreign)))
    assert "foreign:" in str(settings)
    assert ran(foreign)


RULE = """
from pathlib import Path
from partway.buffer.rules import AddedRule
Path(__file__).with_name("ran").touch()
def rule(): return AddedRule(lambda candidate, known: candidate, "confirmed")
"""


def test_a_rule_that_the_run_names_is_not_run_either(partway, tmp_path, monkeypatch):
    leave_unpainted(monkeypatch)
    (tmp_path / "foreign_rule.py").write_text(RULE)
    monkeypatch.syspath_prepend(tmp_path)
    run = write_run(tmp_path / "run", finished=False, added_rules=["foreign_rule:rule"]).directory
    for path in run.glob("checkpoint-*/buffer.jsonl"):
        path.write_text(path.read_text().replace('"added": []', '"added": [["foreign_rule:rule", ""]]'))
    status, _, said = partway("explore", run, "--export", tmp_path / "out")
    assert (status, said.count("added_rules is 'foreign_rule:rule', code that the run names: not run")) == (
        0,
        1,
    )
    status, _, said = partway("buffer", "rejudge", run, "dedup=alpha")
    assert (status, said.rstrip().endswith("--trust runs it")) == (1, True)
    assert not ran(run)
    assert partway("buffer", "rejudge", run, "dedup=alpha", "--trust")[0] == 0
    assert ran(run)
