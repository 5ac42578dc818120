"""The list of a run's problems, in memory, and searching it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partway.reports.explorer.run_parts import Counts, Listed, RunReader, Score, counts_of
from partway.runs import Row

PAGE_SIZE = 50
SHOWN_QUESTION = 240  # characters in the list


class Standing(NamedTuple):
    """What a run made of a problem."""

    kept: Counts = Counts()
    score: Score = Score()


class Entry(NamedTuple):
    """A problem in the list; `other` is how it stands in the run compared with, if it is there."""

    listed: Listed
    text: str
    standing: Standing
    other: Standing | None

    @property
    def key(self) -> str:
        """The split and the line of the problem's file: short, and safe in an address."""
        return f"{self.listed.split}/{self.listed.number}"

    @property
    def has_buffer(self) -> bool:
        """Whether solutions of this problem are kept at all."""
        return self.listed.split == "train"

    def to_json(self, shown: int | None = SHOWN_QUESTION) -> Row:
        """The entry as the page gets it, its question cut to `shown` characters."""
        row: Row = {"key": self.key, "id": self.listed.id, "question": self.listed.question[:shown]}
        row |= _standing_row(self.standing)
        return row | ({"other": _standing_row(self.other)} if self.other is not None else {})


def _standing_row(standing: Standing) -> Row:
    return {
        "fcs": standing.kept.fully_correct,
        "stitched": standing.kept.stitched,
        "pcs": standing.kept.partially_correct,
        "doubted": standing.kept.doubted,
        "found": standing.kept.last_found,
        "drawn": standing.score.drawn,
        "passed": standing.score.passed,
    }


def entries_of(reader: RunReader, other: RunReader | None = None) -> list[Entry]:
    """Every problem of a run as it stands now, beside how it stands in another run with the same problems."""
    others: dict[tuple[str, str, str], Standing] = {}
    if other is not None:
        others = {(one.split, one.id, one.question): standing for one, standing in _standings(other)}
    return [
        Entry(
            listed,
            f"{listed.id}\n{listed.question}".lower(),
            standing,
            others.get((listed.split, listed.id, listed.question)),
        )
        for listed, standing in _standings(reader)
    ]


def _standings(reader: RunReader) -> list[tuple[Listed, Standing]]:
    listed = reader.listed()
    counts = _counts_now(reader, listed)
    shown = {split: reader.shown_evaluation(split) for split in reader.run.splits()}
    scores = {split: reader.judged(name)[0].scores if name else {} for split, name in shown.items()}
    return [(one, Standing(_kept(one, counts), scores[one.split].get(one.id, Score()))) for one in listed]


def _kept(one: Listed, counts: Mapping[str, Counts]) -> Counts:
    """What is kept for a problem; before anything was saved, its reference."""
    if one.split != "train":
        return Counts()
    return counts.get(one.id, Counts(fully_correct=int(one.has_reference)))


def _counts_now(reader: RunReader, listed: Sequence[Listed]) -> Mapping[str, Counts]:
    """What is kept, with what a run in progress found since it was saved."""
    counts = dict(reader.kept().counts)
    news = reader.problems_with_news()
    for one in listed if news else ():  # after the end of a run nothing is new, and nothing is run
        if one.split == "train" and one.id in news:
            buffer = reader.buffer(one, reader.problem(one))
            counts[one.id] = counts_of(buffer.to_json()["solutions"])
    return counts


@dataclass(frozen=True)
class Query:
    """What to look for; an empty field looks for anything.

    >>> Query.of({"text": "Apples", "partial": "yes", "page": "2"}).page
    2
    """

    text: str = ""
    split: str = ""
    least: int | None = None
    most: int | None = None
    partial: str = ""
    beyond: str = ""
    evaluation: str = ""
    compared: str = ""
    order: str = ""
    page: int = 1

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Query:
        """The query that these texts spell; ValueError names one that does not."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {name: text for name, text in given.items() if name in known and text}
        for name in values.keys() & {"least", "most", "page"}:
            values[name] = _whole_number(name, values[name])
        for name, choices in CHOICES.items():
            if values.get(name, "") not in ("", *choices):
                raise ValueError(f"{name} is {values[name]!r}; expected one of {', '.join(choices)}")
        return cls(**values)


def _whole_number(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):  # `int` takes signs, spaces and any length
        raise ValueError(f"{name} is {text!r}; expected a whole number")
    return int(text)


class Columns:
    """What a search compares, one array for all problems, so that it is fast among many."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.has_buffer = np.array([entry.has_buffer for entry in entries], bool)
        self.has_reference = np.array([e.has_buffer and e.listed.has_reference for e in entries], bool)
        self.is_compared = np.array([entry.other is not None for entry in entries], bool)
        self.here = Standings([entry.standing for entry in entries])
        self.other = Standings([entry.other or Standing() for entry in entries])


class Standings:
    """How problems stand in a run, column by column."""

    def __init__(self, standings: Sequence[Standing]) -> None:
        numbers = np.array([(*standing.kept, *standing.score) for standing in standings], np.int64)
        columns = numbers.reshape(len(standings), len(Counts._fields) + len(Score._fields)).T
        kept = columns[: len(Counts._fields)]
        self.fully_correct, self.stitched, self.partially_correct, self.doubted, self.last_found = kept
        self.drawn, self.passed = columns[len(Counts._fields) :]
        self.solutions = self.fully_correct + self.stitched + self.partially_correct
        self.is_solved = self.passed > 0
        self.is_unsolved = (self.drawn > 0) & ~self.is_solved

    def pass_rates(self, without: float) -> NDArray[np.float64]:
        """The share of samples that passed; `without` where none was drawn."""
        return np.where(self.drawn > 0, self.passed / np.maximum(self.drawn, 1), without)


TESTS: dict[str, dict[str, Callable[[Columns], NDArray[np.bool_]]]] = {
    "partial": {
        "yes": lambda columns: columns.here.partially_correct > 0,
        "no": lambda columns: columns.has_buffer & (columns.here.partially_correct == 0),
    },
    "beyond": {
        "luck": lambda columns: columns.here.doubted > 0,
        "stitched": lambda columns: columns.here.stitched > 0,
    },
    "evaluation": {
        "solved": lambda columns: columns.here.is_solved,
        "unsolved": lambda columns: columns.here.is_unsolved,
    },
    "compared": {
        "gained": lambda columns: columns.here.is_solved & columns.other.is_unsolved,
        "lost": lambda columns: columns.here.is_unsolved & columns.other.is_solved,
        "more": lambda columns: columns.is_compared & (columns.here.solutions > columns.other.solutions),
        "fewer": lambda columns: columns.is_compared & (columns.here.solutions < columns.other.solutions),
    },
}
# What was never evaluated comes last, whichever way it is ordered.
ORDERS: dict[str, Callable[[Columns], NDArray[Any]]] = {
    "solutions": lambda columns: -columns.here.solutions,
    "found": lambda columns: -columns.here.last_found,
    "hardest": lambda columns: columns.here.pass_rates(without=2.0),
    "easiest": lambda columns: -columns.here.pass_rates(without=-1.0),
}
CHOICES = {name: tuple(tests) for name, tests in TESTS.items()} | {"order": tuple(ORDERS)}


def search(entries: Sequence[Entry], columns: Columns, query: Query) -> list[Entry]:
    """The entries that fit, in the order asked for; `page` plays no part."""
    fits = np.ones(len(entries), bool)
    if query.least is not None or query.most is not None:
        least, most = query.least or 0, float("inf") if query.most is None else query.most
        fits &= columns.has_buffer & (columns.here.solutions >= least) & (columns.here.solutions <= most)
    for name, tests in TESTS.items():
        if chosen := getattr(query, name):
            fits &= tests[chosen](columns)
    # Stable: equal ones stay in the order of the files.
    order = ORDERS[query.order](columns).argsort(kind="stable") if query.order else np.arange(len(entries))
    found = [entries[number] for number in order[fits[order]].tolist()]
    # Texts come last: only what the arrays let through is searched.
    for word in words_of(query.text):
        found = [entry for entry in found if word in entry.text]
    return [entry for entry in found if entry.listed.split == query.split] if query.split else found


def words_of(text: str) -> list[str]:
    """What all must occur in a problem: words, and phrases in quotation marks, in any case.

    >>> words_of('Apples "how many"')
    ['apples', 'how many']
    """
    return [phrase or word for phrase, word in re.findall(r'"([^"]+)"?|(\S+)', text.lower())]


@dataclass
class Index:
    """The problems of a run at one moment, and the last search among them, which paging repeats."""

    entries: Sequence[Entry]
    version: str

    def __post_init__(self) -> None:
        self.by_key = {entry.key: entry for entry in self.entries}
        self.columns = Columns(self.entries)
        self._last: tuple[Query, list[Entry]] = Query(), list(self.entries)

    def page(self, query: Query) -> Row:
        """One page of what fits `query`, the last one if there are fewer pages."""
        asked, found = self._last
        if asked != replace(query, page=1):
            found = search(self.entries, self.columns, query)
            self._last = replace(query, page=1), found
        pages = max(1, -(-len(found) // PAGE_SIZE))
        page = min(max(query.page, 1), pages)
        shown = found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
        return {
            "total": len(found),
            "page": page,
            "pages": pages,
            "first": (page - 1) * PAGE_SIZE + 1 if found else 0,
            "rows": [entry.to_json() for entry in shown],
        }
