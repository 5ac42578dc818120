"""Finding problems: what a search gives, and how a run in progress shows its news."""

import json
import shutil
import subprocess
from typing import Any

import pytest
from explorer_cases import DEV, SAMPLES, SWAPPED, TRAIN, Writer, finished_run, write_large_run

from partway.errors import RunError
from partway.problem import Problem
from partway.runs import Run
from runexplorer.explorer import Explorer
from runexplorer.export import FILES


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    """A finished run beside one that solves another problem and keeps fewer solutions."""
    folder = tmp_path_factory.mktemp("runs")
    run = finished_run(folder / "run")
    other = Writer(folder / "other")
    other.evaluate(4, {"eggs": [("answer = 1\n", 6)], "cats": [("answer = 3\n", 1), ("answer = 2\n", 5)]})
    other.save("final")
    return Explorer(run, other.run)


# Searches as the page does, and says what it found.
SEARCHING = """
const [, script, list, queries] = process.argv;
require(script);
const { entriesOf, search, pageOf } = partwaySearch;
const entries = entriesOf(JSON.parse(require("fs").readFileSync(list)));
console.log(JSON.stringify(JSON.parse(queries).map((query) => pageOf(search(entries, query), query.page))));
"""


def searched(explorer: Explorer, *queries: dict[str, str]) -> list[dict[str, Any]]:
    """The pages of the list that the page shows, by its own script."""
    if (node := shutil.which("node")) is None:
        pytest.skip("searching is JavaScript, and there is no node to run it")
    (list_file := explorer.reader.run.directory / "list.json").write_text(
        json.dumps(explorer.index.to_json())
    )
    command = [node, "-e", SEARCHING, str(FILES["search.js"]), str(list_file), json.dumps(queries)]
    found: list[dict[str, Any]] = json.loads(subprocess.check_output(command))
    return found


def listed(explorer: Explorer) -> list[dict[str, Any]]:
    """The problems with how they stand in the run."""
    index = explorer.refresh().to_json()
    return [
        {"split": split, "id": id, **dict(zip(index["standing"], here, strict=True))}
        for split, _, id, _, here, _ in index["rows"]
    ]


def test_every_problem_is_listed_with_what_is_kept_and_how_it_was_solved(explorer):
    rows = listed(explorer)
    shown = {row["id"]: (row["fcs"], row["pcs"], row["passed"], row["drawn"]) for row in rows}
    assert shown == {
        "wheels": (2, 1, 0, 0),
        "pens": (2, 0, 0, 0),
        "weak": (1, 0, 0, 0),
        "eggs": (0, 0, 5, 6),
        "cats": (0, 0, 0, 6),
    }


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"text": "HOW many"}, ["pens", "eggs", "cats"]),
        ({"text": '"how much"'}, ["wheels"]),
        ({"text": "wheel oil"}, ["wheels"]),
        ({"text": "wheel cats"}, []),
        ({"text": "weak"}, ["weak"]),
        ({"split": "dev"}, ["eggs", "cats"]),
        ({"least": "2"}, ["wheels", "pens"]),
        ({"most": "1"}, ["weak"]),
        ({"least": "3", "most": "3"}, ["wheels"]),
        ({"partial": "yes"}, ["wheels"]),
        ({"partial": "no"}, ["pens", "weak"]),
        ({"beyond": "luck"}, []),
        ({"evaluation": "solved"}, ["eggs"]),
        ({"evaluation": "unsolved"}, ["cats"]),
        ({"compared": "gained"}, ["eggs"]),
        ({"compared": "lost"}, ["cats"]),
        ({"compared": "more"}, ["wheels", "pens", "weak"]),
        ({"compared": "fewer"}, []),
        ({"order": "solutions", "split": "train"}, ["wheels", "pens", "weak"]),
        ({"order": "found"}, ["weak", "pens", "wheels", "eggs", "cats"]),
        ({"order": "hardest"}, ["cats", "eggs", "wheels", "pens", "weak"]),
        ({"order": "easiest"}, ["eggs", "cats", "wheels", "pens", "weak"]),
    ],
)
def test_a_search_finds_what_fits(explorer, query, ids):
    (page,) = searched(explorer, query)
    assert [row["id"] for row in page["rows"]] == ids


def test_a_problem_of_several_splits_is_counted_once(tmp_path):
    run = finished_run(tmp_path / "run")
    run.write_problems("dev", [*TRAIN, *DEV])
    everything, dev = searched(Explorer(run), {}, {"split": "dev"})
    assert (everything["problems"], everything["total"]) == (5, 8)
    assert (dev["problems"], dev["total"]) == (5, 5)


def test_runs_without_a_common_problem_are_not_compared(tmp_path):
    others = [Problem(p.id, f"Another question about {p.id}", 1) for p in TRAIN]
    Writer(tmp_path / "other", train=others, dev=())
    explorer = Explorer(finished_run(tmp_path / "run"), Run(tmp_path / "other"))
    with pytest.raises(RunError, match="no problem in common"):
        explorer.check()


def test_a_run_without_problems_is_refused(tmp_path):
    run = Run(tmp_path)
    run.write_config({})
    with pytest.raises(RunError, match="no problems"):
        Explorer(run).check()


def kept(explorer: Explorer) -> dict[str, tuple[int, int]]:
    return {row["id"]: (row["fcs"], row["pcs"]) for row in listed(explorer) if row["split"] == "train"}


def test_a_run_shows_its_news_before_and_after_its_first_checkpoint(tmp_path):
    writer = Writer(tmp_path)
    explorer = Explorer(writer.run)
    assert kept(explorer) == {"wheels": (1, 0), "pens": (1, 0), "weak": (0, 0)}
    writer.sample(SAMPLES[:2])
    assert kept(explorer) == {"wheels": (2, 1), "pens": (1, 0), "weak": (0, 0)}
    writer.save("checkpoint-2")
    writer.sample(SAMPLES[2:5])
    assert kept(explorer) == {"wheels": (2, 1), "pens": (2, 0), "weak": (0, 0)}
    writer.sample(SAMPLES[5:])
    writer.save("final")
    assert kept(explorer) == {"wheels": (2, 1), "pens": (2, 0), "weak": (1, 0)}


def test_news_are_found_at_the_step_that_found_them(tmp_path):
    writer = Writer(tmp_path)
    writer.save("checkpoint-0")
    writer.sample()
    view = Explorer(writer.run).problem("train/1")
    assert [(s["kind"], s["found"]) for s in view["solutions"]] == [
        ("reference", 0),
        ("fully_correct", 1),
        ("partially_correct", 2),
    ]


def test_a_line_that_is_being_written_waits(tmp_path):
    writer = Writer(tmp_path)
    writer.sample(SAMPLES[:1])
    file = tmp_path / "samples" / "00000001.jsonl"
    line = file.read_bytes()
    file.write_bytes(line + line.replace(b'"step": 1', b'"step": 2').replace(b"n2 + t0", b"t0 + n2")[:-20])
    explorer = Explorer(writer.run)
    assert kept(explorer)["wheels"] == (2, 0)


def test_a_resumed_run_takes_back_what_was_cut(tmp_path):
    writer = Writer(tmp_path)
    writer.sample(SAMPLES[:1])
    writer.save("checkpoint-1")
    positions = writer.run.positions()
    writer.sample(SAMPLES[1:2])
    explorer = Explorer(writer.run)
    assert kept(explorer)["wheels"] == (2, 1)
    writer.run.cut(1, positions)
    assert kept(explorer)["wheels"] == (2, 0)


def test_another_line_of_the_same_length_is_noticed(tmp_path):
    writer = Writer(tmp_path)
    writer.sample([(1, "pens", "", "n0 = 3\nn1 = 4\nanswer = n1 * n0\n", None)])
    explorer = Explorer(writer.run)
    assert kept(explorer)["pens"] == (2, 0)
    file = tmp_path / "samples" / "00000001.jsonl"
    text = file.read_text().replace("new_fully_correct", "known_incorrect__")
    assert len(text) == file.stat().st_size
    file.write_text(text.replace("known_incorrect__", "not_executable").replace('"pens"', '"pens"   '))
    assert kept(explorer)["pens"] == (1, 0)


def test_what_is_open_survives_the_removal_of_its_checkpoint(tmp_path):
    writer = Writer(tmp_path)
    writer.save("checkpoint-1")
    explorer = Explorer(writer.run)
    explorer.refresh()
    writer.sample()
    writer.save("checkpoint-9")
    (tmp_path / "checkpoint-1" / "buffer.jsonl").unlink()
    assert len(explorer.problem("train/1")["solutions"]) == 3


def test_nothing_new_leaves_the_list_as_it_is(tmp_path):
    explorer = Explorer(finished_run(tmp_path))
    assert explorer.refresh() is explorer.refresh()


def test_a_damaged_file_is_named(tmp_path):
    run = finished_run(tmp_path)
    (tmp_path / "final" / "buffer.jsonl").write_text('{"id": "wheels"\n')
    with pytest.raises(RunError, match=r"buffer\.jsonl, line 1: not JSON"):
        Explorer(run).check()


@pytest.mark.volume
def test_among_many_thousand_problems_the_page_asked_for_is_found(tmp_path):
    explorer = Explorer(write_large_run(tmp_path, 25_000))
    everything, last, one = searched(explorer, {}, {"page": "500"}, {"text": "p-17777"})
    assert (everything["total"], everything["pages"], len(everything["rows"])) == (25_000, 500, 50)
    assert (last["first"], last["rows"][-1]["key"]) == (24_951, "train/25000")
    assert [row["key"] for row in one["rows"]] == ["train/17778"]


def test_a_swapped_solution_is_one_of_the_kept(explorer):
    view = explorer.problem("train/1")
    assert SWAPPED.splitlines() == [step["text"] for step in view["solutions"][1]["steps"]]


def test_problems_evaluated_on_have_no_buffer(explorer):
    assert [entry.has_buffer for entry in explorer.index.entries] == [True] * len(TRAIN) + [False] * len(DEV)
