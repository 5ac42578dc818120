"""Problems in partway's own layout, which the method reads without any folder around it."""

import gc

import pytest

from partway import Problem, load_problems, registry
from partway.errors import ConfigError, ProblemError
from partway.problems import collecting_later, write_problems

PROBLEMS = [
    Problem("oil", "10 ml for each of 2 wheels?", 20, "n0 = 10\nanswer = n0 * 2", {"split": "train"}),
    Problem("bus", "Which bus,\u2028as text?", "72"),
    Problem("rows", "How many rows?", 3, context="CREATE TABLE t (n INTEGER)"),
]


@pytest.fixture(params=[True, False], ids=["with every folder", "alone"])
def _folders(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(registry, "parts", lambda kind: {})


@pytest.mark.usefixtures("_folders")
def test_what_is_written_is_read_again(tmp_path):
    write_problems(tmp_path / "problems.jsonl", PROBLEMS)
    found = load_problems(tmp_path / "problems.jsonl")
    assert found == PROBLEMS
    assert found[0].meta == {"split": "train"}


@pytest.mark.usefixtures("_folders")
def test_rows_in_memory_are_read_too():
    (problem,) = load_problems([{"id": "a", "question": "1 + 1?", "answer": 2}])
    assert problem == Problem("a", "1 + 1?", 2)


@pytest.mark.parametrize("content", ['{"id": "a"}', "{", "[1]"])
def test_alone_another_layout_is_one_line(tmp_path, monkeypatch, content):
    monkeypatch.setattr(registry, "parts", lambda kind: {})
    (tmp_path / "rows.jsonl").write_text(content)
    with pytest.raises(ProblemError, match=r"rows\.jsonl: not partway's own layout \("):
        load_problems(tmp_path / "rows.jsonl")
    with pytest.raises(ProblemError, match=r"absent\.jsonl: cannot be read \(No such file"):
        load_problems(tmp_path / "absent.jsonl")
    with pytest.raises(ConfigError, match=r"columns is question=q, but only partway's own are known"):
        load_problems([], columns="question=q")


def test_garbage_waits_and_is_collected_again_whatever_happens():
    assert gc.isenabled()
    seen = []

    @collecting_later()
    def fail():
        seen.append(gc.isenabled())
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert seen == [False]
    assert gc.isenabled()
