"""Raw data sets from a directory or from the Hub, with a stand-in for the Hub."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mathdata.raw import GSM8K, MATHQA, HubSplit, RawData, read_raw, row_digest
from partway.errors import ProblemError

ROWS = [{"question": f"{number}?", "answer": str(number)} for number in range(3)]
SMALL = RawData(
    name="Small",
    home="https://example.org",
    files={"train": ("train.json", "train.jsonl"), "test": ("test.jsonl",)},
    hub_name="example/small",
    hub_config=None,
    hub_splits={"train": HubSplit("learn", 3, {2: row_digest(ROWS[2], ("question", "answer"))})},
    columns=("question", "answer"),
)


def stand_in_hub(monkeypatch: pytest.MonkeyPatch, splits: dict[str, Any] | Exception) -> None:
    class DatasetsError(Exception):
        pass

    def load_dataset(name: str, config: str | None) -> dict[str, Any]:
        assert (name, config) == ("example/small", None)
        if isinstance(splits, Exception):
            raise splits
        return splits

    hub = SimpleNamespace(
        load_dataset=load_dataset,
        exceptions=SimpleNamespace(DatasetsError=DatasetsError),
        config=SimpleNamespace(HF_HUB_OFFLINE=True),
    )
    monkeypatch.setitem(sys.modules, "datasets", hub)


def test_the_hub_is_read_where_no_source_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_hub(monkeypatch, {"learn": ROWS, "other": []})
    assert read_raw(SMALL, None) == {"train": ROWS}


@pytest.mark.parametrize(
    ("splits", "complaint"),
    [
        ({"learn": ROWS[:2]}, "its learn split has 2 rows instead of 3"),
        ({"learn": [*ROWS[:2], {"question": "2?", "answer": "two"}]}, "row 2 of its learn split is not"),
        ({"train": ROWS}, "learn"),
        (ConnectionError("no way to reach it\nmore"), "no way to reach it; instead"),
    ],
)
def test_a_hub_that_fails_or_has_other_rows_is_an_error(
    monkeypatch: pytest.MonkeyPatch, splits: Any, complaint: str
) -> None:
    stand_in_hub(monkeypatch, splits)
    with pytest.raises(ProblemError) as caught:
        read_raw(SMALL, None)
    message = str(caught.value)
    assert complaint in message
    assert "put train.json or train.jsonl and test.jsonl from https://example.org into a directory" in message
    assert "\n" not in message


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ProblemError, match=r"pip install 'partway\[datasets\]'"):
        read_raw(SMALL, None)


def test_a_directory_is_read_by_the_first_name_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    (tmp_path / "test.jsonl").write_text(json.dumps(ROWS[1]) + "\n")
    assert read_raw(SMALL, tmp_path) == {"train": ROWS[:1], "test": ROWS[1:2]}
    (tmp_path / "train.json").write_text(json.dumps(ROWS))
    assert read_raw(SMALL, tmp_path)["train"] == ROWS


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps(ROWS[0]) + "\n" + '{"question": "cut o')
    (tmp_path / "test.jsonl").write_text("\n")
    with pytest.raises(ProblemError, match=r"train\.jsonl:2: row: not JSON: .*; is the file complete\?"):
        read_raw(SMALL, tmp_path)
    (tmp_path / "train.jsonl").write_text(json.dumps(ROWS[0]))
    with pytest.raises(ProblemError, match=r"test\.jsonl: the file is empty"):
        read_raw(SMALL, tmp_path)


def test_a_file_of_something_else_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(
        json.dumps(ROWS[0]) + "\n" + json.dumps({"question": "?", "answer": 5})
    )
    (tmp_path / "test.jsonl").write_text(json.dumps(ROWS[0]))
    with pytest.raises(ProblemError, match="row 1 has no text in 'answer'; is this a file of Small"):
        read_raw(SMALL, tmp_path)


@pytest.mark.parametrize("data", [GSM8K, MATHQA], ids=["gsm8k", "mathqa"])
def test_the_known_rows_are_those_of_the_real_data(data: RawData, real_data: Path) -> None:
    splits = read_raw(data, real_data / data.name.lower())
    for split, known in data.hub_splits.items():
        assert len(splits[split]) == known.rows
        for index, digest in known.digests.items():
            assert row_digest(splits[split][index], data.columns) == digest
