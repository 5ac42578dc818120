"""Compares samples with what is known of a problem; identical samples are one row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from partway.buffer import Verdict
from partway.cli.trace_tables import rows_by_step
from partway.errors import CodeError, clipped
from partway.language import Failure, Language, Trace
from partway.language.language import form_of
from partway.problem import Problem
from partway.runs import Row
from partway.solution import EMPTY, Solution
from runexplorer.run_parts import sampled_text, traced
from runreports.trace_html import KnownStates, deviation
from straightline import canonical

RIGHT = {Verdict.NEW_FULLY_CORRECT, Verdict.KNOWN_FULLY_CORRECT}
MAX_GROUPS = 100  # shown; a page of thousands would not be read


@dataclass(frozen=True)
class KnownSolutions:
    """The kept solutions of a problem, the reference or the first one found at the head, and their states."""

    problem: Problem
    language: Language
    solutions: tuple[Solution, ...]
    states: KnownStates

    def compared(self, trace: Trace) -> Row:
        """A solution beside what is known: its steps and states, where it deviates, how far it is right."""
        row: Row = {
            "steps": self.states.step_rows(trace, self.language, against=self._against(trace)),
            "deviates": deviation(trace.solution, self.solutions[0]) if self.solutions else None,
            "matching": trace.longest_known_prefix(self.states.numbers),
            "is_right": self._is_right(trace),
        }
        if trace.has_answer:
            row["answer"] = clipped(spelled(trace.answer))
        if trace.failure is not None:
            failure = trace.failure
            row["failure"] = {"kind": failure.kind, "message": clipped(failure.message), "step": failure.step}
        if trace.failure is None and trace.solution in self.solutions:
            row["same_as"] = self.solutions.index(trace.solution)
        return row

    def _against(self, trace: Trace) -> Trace | None:
        """The first solution, whose rows are marked in others; None where states are not tables."""
        has_rows = rows_by_step(self.language) is not None and bool(self.solutions)
        if not has_rows or trace.solution == self.solutions[0]:
            return None
        return traced(self.problem, [self.solutions[0].text], self.language)[0]

    def _is_right(self, trace: Trace) -> bool:
        try:
            return self.language.is_correct(self.problem, trace)
        except CodeError:  # whoever has a record of it says so
            return False


def spelled(value: Any) -> str:
    """A value as a reader expects it: a text without quotation marks, anything else as it is compared."""
    return value if isinstance(value, str) else canonical(value)


@dataclass(frozen=True)
class SampleGroup:
    """Samples that are the same solution, or the same text where it is none."""

    trace: Trace
    text: str
    rows: Sequence[Row]


def grouped(rows: Sequence[Row], texts: Sequence[str], traces: Sequence[Trace]) -> list[SampleGroup]:
    """The samples, each with its text and trace, in groups, in the order met."""
    groups: defaultdict[Solution | str, list[int]] = defaultdict(list)
    for number, (trace, text) in enumerate(zip(traces, texts, strict=True)):
        # What failed may have been cut at another place: only the text tells such samples apart.
        is_whole = trace.failure is None and trace.solution.steps
        groups[trace.solution if is_whole else text.strip()].append(number)
    return [
        SampleGroup(traces[numbers[0]], texts[numbers[0]], [rows[number] for number in numbers])
        for numbers in groups.values()
    ]


def self_sample_groups(problem: Problem, rows: Sequence[Row], language: Language) -> list[SampleGroup]:
    """The self-samples of a problem in groups."""
    texts = [sampled_text(row) for row in rows]
    return grouped(rows, texts, traced(problem, texts, language))


def self_samples_view(groups: Sequence[SampleGroup], known: KnownSolutions) -> Row:
    """Self-samples as the page shows them: verdicts over all, and the most frequent groups."""
    rows = [row for group in groups for row in group.rows]
    return {
        "drawn": drawn(rows),
        "verdicts": verdicts_of(rows),
        **shown_groups([_self_sample_row(group, known) for group in groups]),
    }


def _self_sample_row(group: SampleGroup, known: KnownSolutions) -> Row:
    steps = [int(row["step"]) for row in group.rows]
    compared, verdicts = _compared(group, known), verdicts_of(group.rows)
    return {
        **compared,
        "is_right": compared["is_right"] or not verdicts.keys().isdisjoint(RIGHT),
        "count": drawn(group.rows),
        "verdicts": verdicts,
        "guided": drawn(row for row in group.rows if row["prefix"]),
        "first": min(steps),
        "last": max(steps),
    }


def evaluation_view(rows: Sequence[Row], pass1: Sequence[Row], known: KnownSolutions) -> Row:
    """Evaluation samples as the page shows them; `pass1` are those drawn apart for the paper's pass@1."""
    marked = [*rows, *({**row, "is_pass1": True} for row in pass1)]
    texts = [str(row["completion"]) for row in marked]
    groups = grouped(marked, texts, _evaluation_traces(marked, texts, known))
    return {
        "drawn": drawn(rows),
        "passed": drawn(row for row in rows if row["passed"]),
        **shown_groups([_evaluation_row(group, known) for group in groups]),
    }


def _evaluation_traces(rows: Sequence[Row], texts: Sequence[str], known: KnownSolutions) -> list[Trace]:
    """The traces of evaluation samples; what ran out of time or memory then is not run again."""
    recorded = {
        text: Trace(_solution(text, known.language), (), (), failure)
        for row, text in zip(rows, texts, strict=True)
        if (failure := _exhaustion(row)) is not None
    }
    others = list(dict.fromkeys(text for text in texts if text not in recorded))
    found = recorded | dict(zip(others, traced(known.problem, others, known.language), strict=True))
    return [found[text] for text in texts]


def _solution(text: str, language: Language) -> Solution:
    form = form_of(text, language)
    return form if isinstance(form, Solution) else EMPTY


def _exhaustion(row: Row) -> Failure | None:
    """The failure that an evaluation recorded, if it was one of time or memory.

    >>> _exhaustion({"failure": "timeout", "failed_step": 2})
    Failure(kind='timeout', message='ran out of time in the evaluation', step=1)
    """
    kind = row.get("failure")
    if kind not in ("timeout", "memory"):
        return None
    what = "time" if kind == "timeout" else "memory"
    return Failure(kind, f"ran out of {what} in the evaluation", int(row["failed_step"]) - 1)


def _evaluation_row(group: SampleGroup, known: KnownSolutions) -> Row:
    first = group.rows[0]
    return {
        **_compared(group, known),
        "is_right": bool(first["passed"]),
        "result": str(first.get("result", "passed" if first["passed"] else "failed")),
        "count": drawn(row for row in group.rows if "is_pass1" not in row),
        "pass1": drawn(row for row in group.rows if "is_pass1" in row),
    }


def _compared(group: SampleGroup, known: KnownSolutions) -> Row:
    row, trace = known.compared(group.trace), group.trace
    return row if trace.failure is None and trace.solution.steps else row | {"written": group.text}


def shown_groups(rows: Sequence[Row]) -> Row:
    """The most frequent groups, and how many others there are."""
    # Of equally frequent ones the right ones first.
    in_order = sorted(rows, key=lambda row: (-row["count"], not row["is_right"]))
    return {"groups": in_order[:MAX_GROUPS], "others": max(0, len(rows) - MAX_GROUPS)}


def drawn(rows: Iterable[Row]) -> int:
    """How many samples the rows stand for."""
    return sum(int(row.get("count", 1)) for row in rows)


def verdicts_of(rows: Iterable[Row]) -> dict[str, int]:
    """How many samples were given each verdict."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts[str(row["verdict"])] += drawn([row])
    return dict(counts)
