"""Raw public data sets: from a directory of their files, or from the Hugging Face Hub.

What comes from the Hub is checked against known numbers of rows and digests of a few of them, so that a
changed copy is noticed before anything is made of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from partway.data.hub import reaching_hub
from partway.data.sources import read_rows
from partway.errors import ProblemError

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class HubSplit:
    """A split as the Hub has it: its name there, how many rows it has, digests of some of them."""

    name: str
    rows: int
    digests: Mapping[int, str]


@dataclass(frozen=True)
class RawData:
    """A public data set: per split the file names it comes under, and where it is on the Hub."""

    name: str
    home: str
    files: Mapping[str, Sequence[str]]
    hub_name: str
    hub_config: str | None
    hub_splits: Mapping[str, HubSplit]
    columns: Sequence[str]  # texts that every row has, and that make its digest

    @property
    def wanted(self) -> str:
        """The files that make it, and where they come from."""
        names = [" or ".join(names) for names in self.files.values()]
        return f"put {', '.join(names[:-1])} and {names[-1]} from {self.home} into a directory"


GSM8K = RawData(
    name="GSM8K",
    home="https://github.com/openai/grade-school-math (grade_school_math/data)",
    files={"train": ("train.jsonl",), "test": ("test.jsonl",)},
    hub_name="openai/gsm8k",
    hub_config="main",
    hub_splits={
        "train": HubSplit(
            "train", 7473, {0: "051a5ca31cd68430", 3736: "cc20514033858ac0", 7472: "80736f1dc632f15e"}
        ),
        "test": HubSplit(
            "test", 1319, {0: "91c9bc5d4d772481", 659: "bb60f7d236a39d5b", 1318: "d5d97e2321393e87"}
        ),
    },
    columns=("question", "answer"),
)

MATHQA = RawData(
    name="MathQA",
    home="https://math-qa.github.io (MathQA.zip)",
    files={
        "train": ("train.json", "train.jsonl", "train_reconstructed.jsonl"),
        "dev": ("dev.json", "dev.jsonl"),
        "test": ("test.json", "test.jsonl"),
    },
    hub_name="regisss/math_qa",  # allenai/math_qa as Parquet: the original is a script that no longer loads
    hub_config=None,
    hub_splits={
        "train": HubSplit(
            "train", 29837, {0: "277151bb59640a17", 14918: "ad6eabc714206481", 29836: "9622edc94a14d7e8"}
        ),
        "dev": HubSplit(
            "validation", 4475, {0: "3987550a7a0299eb", 2237: "d95bb11b27e5b436", 4474: "c76723e703cddf2a"}
        ),
        "test": HubSplit(
            "test", 2985, {0: "91d81f7122479e52", 1492: "14c82cd57e8a8d34", 2984: "dea5b8221d0795c3"}
        ),
    },
    columns=("Problem", "correct"),
)


def read_raw(data: RawData, source: Path | None) -> dict[str, Rows]:
    """The rows of every split, from the directory `source` or, without one, from the Hub."""
    return _read_hub(data) if source is None else _read_directory(data, source)


def row_digest(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    """A short digest of some columns of a row."""
    return sha256(json.dumps([row.get(column) for column in columns]).encode()).hexdigest()[:16]


def _read_directory(data: RawData, source: Path) -> dict[str, Rows]:
    if not source.is_dir():
        raise ProblemError(f"{source}: no such directory; {data.wanted} and name that")
    paths = {}
    for split, names in data.files.items():
        present = [source / name for name in names if (source / name).is_file()]
        if not present:
            raise ProblemError(f"{source}: there is no {' or '.join(names)}; {data.wanted} and name that")
        paths[split] = present[0]  # names are in order of preference
    return {split: _checked_columns(data, path, read_rows(path)) for split, path in paths.items()}


def _checked_columns(data: RawData, path: Path, rows: Rows) -> Rows:
    for index, row in enumerate(rows):
        for column in data.columns:
            if not isinstance(row.get(column), str):
                raise ProblemError(
                    f"{path}: row {index} has no text in '{column}'; is this a file of {data.name}?"
                )
    return rows


def _read_hub(data: RawData) -> dict[str, Rows]:
    with reaching_hub(partial(_unreachable, data)) as datasets:
        hub = datasets.load_dataset(data.hub_name, data.hub_config)
        splits = {split: [dict(row) for row in hub[there.name]] for split, there in data.hub_splits.items()}
    for split, rows in splits.items():
        _check_rows(data, split, rows)
    return splits


def _check_rows(data: RawData, split: str, rows: Rows) -> None:
    known = data.hub_splits[split]
    if len(rows) != known.rows:
        raise _unreachable(data, f"its {known.name} split has {len(rows)} rows instead of {known.rows}")
    for index, digest in known.digests.items():  # the first row, one in the middle, the last
        if row_digest(rows[index], data.columns) != digest:
            raise _unreachable(data, f"row {index} of its {known.name} split is not the one expected")


def _unreachable(data: RawData, reason: str) -> ProblemError:
    advice = f"{data.wanted} and pass it as --source"
    return ProblemError(f"cannot use {data.hub_name} from the Hugging Face Hub: {reason}; instead, {advice}")
