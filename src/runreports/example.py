"""One problem of a run, shown as in the paper's Figure 1, and when the model learned to solve it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from partway.buffer import SolutionBuffer, Verdict
from partway.cli.options import counted
from partway.language import Trace, trace_all
from partway.language.named import Unread
from partway.problem import problem_of
from partway.runs import Row, Run, read_rows
from partway.sample import Sample
from runreports.buffer_html import buffer_cards
from runreports.study import Study
from runreports.summaries import RunSummary
from runreports.trace_html import cards_html, shown_text

SHOWN = {"fully_correct": 2, "partially_correct": 2}  # at most, of each kind
LONG_QUESTION, LONG_SOLUTION = 260, 7  # characters, steps
RIGHT = (Verdict.NEW_FULLY_CORRECT, Verdict.KNOWN_FULLY_CORRECT)


@dataclass(frozen=True)
class Example:
    """A problem to show: the run it is from, its buffer, and when it was learned."""

    run: RunSummary
    buffer: SolutionBuffer
    learned: str

    def to_html(self) -> str:
        """The question, the answer, and solutions of each kind side by side."""
        problem, language = self.buffer.problem, self.buffer.language
        kept = self.buffer.fully_correct, self.buffer.partially_correct
        found = [trace_all(of_kind, language, problem) for of_kind in kept]
        traces = [
            t for of_kind, most in zip(found, SHOWN.values(), strict=True) for t in _varied(of_kind)[:most]
        ]
        return (
            f'<p class="question">{shown_text(problem.question)}</p>'
            f'<div class="partway">{cards_html(list(buffer_cards(self.buffer, traces)), language)}</div>'
            f"<p>{shown_text(self.learned)}</p>"
        )


def _varied(traces: Sequence[Trace]) -> list[Trace]:
    """The traces, of those that go through the same states the first, then the others."""
    firsts = {trace.states: trace for trace in reversed(traces)}
    return sorted(traces, key=lambda trace: firsts[trace.states] is not trace)


def example_of(study: Study) -> Example | None:
    """The most telling problem of the last setting that samples, None where nothing was kept."""
    for setting in reversed(study.sampling):
        for summary in setting.runs:
            run = Run(summary.directory)
            if isinstance(run.language, Unread):  # it would have no states
                continue
            file = run.buffer_file()
            problems = {row["id"]: row for row in read_rows(run.problems_file("train"))}
            rows = [row for row in read_rows(file) if row["id"] in problems] if file is not None else []
            found = [row for row in rows if any(kept["found"] for kept in row["solutions"])]
            telling = [row for row in found if problems[row["id"]].get("solution")]
            solved = [row for row in found if row not in telling and _kinds(row)["fully_correct"]]
            if solved:  # what nobody wrote a solution of tells most
                continued = first_continued(run)
                row = max(solved, key=lambda row: (row["id"] in continued, _worth(row, problems[row["id"]])))
                told = how_solved(run, row["id"], continued.get(row["id"]))
            elif telling:
                row = max(telling, key=lambda row: _worth(row, problems[row["id"]]))
                told = when_learned(run, row["id"])
            else:
                continue
            problem = problem_of(problems[row["id"]], run.language.parse)
            return Example(summary, SolutionBuffer.from_json(problem, row, run.language), told)
    return None


def first_continued(run: Run) -> dict[str, Sample]:
    """By problem the first new solution that went on from a beginning the model had kept."""
    found: dict[str, Sample] = {}
    for sample in run.samples():
        if sample.prefix and sample.verdict is Verdict.NEW_FULLY_CORRECT:
            found.setdefault(sample.problem, sample)
    return found


def how_solved(run: Run, problem: str, continued: Sample | None) -> str:
    """How the model came to solve a problem that has its answer only."""
    first = min(s.step for s in run.samples() if s.problem == problem and s.verdict in RIGHT)
    told = (
        "Nobody wrote a solution of it: the model had the answer only. It first solved it at step "
        f"{first:,}, from nothing: which beginnings are right is known only once there is a solution."
    )
    if continued is None:
        return told
    beginning = "; ".join(continued.prefix.splitlines())
    return f'{told} At step {continued.step:,} it went on from the beginning "{beginning}" to another one.'


def _kinds(row: Row) -> Counter[str]:
    """How many ways of each kind; other names and spellings go through the same states: they are one way."""
    ways = {(solution["kind"], *solution["states"]) for solution in row["solutions"]}
    return Counter(kind for kind, *_ in ways)


def _worth(row: Row, problem: Row) -> tuple[bool, bool, int]:
    """Short problems with solutions of every kind first, then those with many."""
    kinds = _kinds(row)
    longest = max(len(solution["steps"]) for solution in row["solutions"])
    is_short = len(problem["question"]) <= LONG_QUESTION and longest <= LONG_SOLUTION
    has_all = kinds["fully_correct"] > 1 and kinds["partially_correct"] > 0
    # Beyond four of a kind nothing is gained: only a few are shown.
    return is_short, has_all, min(kinds["fully_correct"], 4) + min(kinds["partially_correct"], 4)


def when_learned(run: Run, problem: str) -> str:
    """When the model first solved a problem from scratch, and how its later samples did."""
    drawn = [
        (sample.step, sample.verdict in RIGHT)
        for sample in run.samples()
        if sample.problem == problem and not sample.prefix
        for _ in range(sample.count)
    ]
    if not drawn:
        return "The model drew no samples of it from scratch."
    first = next((step for step, is_right in drawn if is_right), None)
    if first is None:
        return f"Of {counted(len(drawn), 'sample')} the model drew of it from scratch none was kept whole."
    half = len(drawn) // 2
    early, late = (sum(is_right for _, is_right in part) for part in (drawn[:half], drawn[half:]))
    told = f"The model first solved it from scratch at step {first:,}"
    if not half:
        return f"{told}, the only time it tried."
    if len(drawn) < 4:
        return f"{told}; {early + late:,} of its {len(drawn):,} samples were right."
    halves = f"{early:,} of its first {half:,} samples were right, {late:,} of its last {len(drawn) - half:,}"
    return f"{told}; {halves}."
