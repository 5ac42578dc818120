"""The whole way for SQL: data, training, evaluation, report, a look at a query."""

import json
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("sqlglot", reason="SQL needs sqlglot: pip install partway[sql]")


@pytest.fixture
def data(tmp_path: Path, partway) -> Path:
    """Problems of a source in Spider's layout."""
    path = tmp_path / "source" / "database" / "geo" / "geo.sqlite"
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE state (name TEXT, area REAL)")
        connection.executemany("INSERT INTO state VALUES (?, ?)", [("ohio", 44.8), ("texas", 268.6)])
    connection.close()
    query = "SELECT s.name FROM state AS s WHERE s.area = (SELECT {}(area) FROM state)"
    rows = [
        {"db_id": "geo", "question": f"Which state is {word}?", "query": query.format(function)}
        for word, function in {"largest": "MAX", "smallest": "MIN"}.items()
    ]
    for name in ("train_spider.json", "dev.json"):
        (tmp_path / "source" / name).write_text(json.dumps(rows))
    code, out, _ = partway(
        "data", "sql", "--source", tmp_path / "source", "--out", tmp_path / "data", "--json"
    )
    assert code == 0
    assert json.loads(out)["with_reference"] == {"train": 2, "dev": 2}
    return tmp_path


def test_a_model_learns_queries_and_is_measured_by_their_rows(data: Path, partway):
    run, dev = data / "run", data / "data" / "dev.jsonl"
    settings = {
        "model_name_or_path": "tiny",
        "language": "sql",
        "output_dir": run,
        "max_steps": 5,
        "train_file": data / "data" / "train.jsonl",
        "per_device_train_batch_size": 2,
        "max_completion_length": 24,
        "logging_steps": 1,
        "eval_strategy": "no",
        "use_cpu": True,
    }
    words = [word for key, value in settings.items() for word in (f"--{key}", value)]
    code, _, said = partway("train", *words)
    assert code == 0, said
    measured = ["--samples", 2, "--k", "1,2", "--json"]
    code, out, said = partway("evaluate", run, "--problems", dev, *measured)
    assert code == 0, said
    metrics = json.loads(out)["metrics"]
    assert {"pass@1", "pass@2", "execution_accuracy"} <= metrics.keys()
    assert metrics["execution_accuracy"]["value"] == metrics["pass@1"]["value"]
    code, out, _ = partway("evaluate", run, "--problems", dev, *measured[:-1])
    shown = next(line.split() for line in out.splitlines() if "execution_accuracy" in line)
    assert shown[1].endswith("%")
    assert shown[-2:] == ["right", "rows"]
    chance = ["--chance", data / "data" / "train.jsonl", "--language", "sql"]
    code, out, said = partway("evaluate", *chance, "--problems", dev, *measured, "--out", data / "chance")
    assert code == 0, said
    assert "execution_accuracy" in json.loads(out)["metrics"]
    code, _, said = partway("report", run, "--out", data / "report")
    assert code == 0, said
    assert "pass@1" in (data / "report" / "report.html").read_text("utf-8")


def test_a_query_is_shown_beside_a_reference_row_by_row(data: Path, partway, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    (data / "reference.sql").write_text("WITH t1 AS (SELECT MAX(area) FROM state)\nSELECT name FROM state")
    (data / "query.sql").write_text("with big as (select area from state order by 1 desc limit 1) select 1")
    database = data / "source" / "database" / "geo" / "geo.sqlite"
    words = ["trace", data / "query.sql", "--database", database, "--against", data / "reference.sql"]
    code, out, said = partway(*words)
    assert code == 0, said
    assert "= 268.6" in out
    assert "right up to step 1" in out
    code, out, _ = partway(*words, "--json")
    assert json.loads(out)["matching_length"] == 1
    code, _, said = partway("trace", data / "query.sql", "--database", data / "nowhere.sqlite")
    assert "nowhere.sqlite: cannot be read" in said or "cannot be read" in _


def test_a_database_that_is_not_there_is_one_line(tmp_path: Path, partway):
    query = tmp_path / "query.sql"
    query.write_text("SELECT 1")
    code, out, said = partway("trace", query, "--database", tmp_path / "nowhere.sqlite")
    assert (code, out) == (1, "")
    assert said == (
        f"partway: error: {tmp_path}/nowhere.sqlite: cannot be read (No such file or directory)\n"
    )


def test_a_file_of_queries_is_checked(data: Path, partway):
    code, out, _ = partway("data", "check", data / "data" / "train.jsonl", "--language", "sql")
    assert code == 0
    assert "2 problems" in out


def test_what_to_do_after_converting_speaks_of_sql(data: Path, partway):
    code, _, said = partway("data", "sql", "--source", data / "source", "--out", data / "data")
    assert code == 0
    assert said.splitlines()[-1].endswith(" --language sql")
