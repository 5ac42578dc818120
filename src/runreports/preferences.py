"""Pairs of a right and a wrong continuation from the samples of a run, for training on preferences.

The pairs are what TRL's DPOTrainer reads, and taken apart what its KTOTrainer reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from partway.buffer import SolutionBuffer, Verdict
from partway.language import Trace
from partway.runs import Row, Run
from partway.solution import Solution
from runreports.buffers import write_counted
from runreports.trace_html import deviation
from runreports.wording import Wording

# The answer of these is wrong, whatever their beginning is.
WRONG = {
    Verdict.NEW_PARTIALLY_CORRECT,
    Verdict.KNOWN_PARTIALLY_CORRECT,
    Verdict.INCORRECT,
    Verdict.NOT_EXECUTABLE,
}


@dataclass(frozen=True)
class Preference:
    """Two ways to go on from one prompt, which may hold the first steps of a solution."""

    prompt: str
    chosen: str
    rejected: str
    problem_id: str


def preferences(run: Run) -> Iterator[Preference]:
    """For every finished wrong sample, how a kept solution goes on where the sample went wrong.

    A sample whose next step still reaches a known state went wrong later, where no kept solution is with it:
    it is left out. So are samples of problems without a solution. Each pair is given once.
    """
    buffers, wording = run.buffers(), Wording.of(run)
    samples = [sample for sample in run.samples() if sample.finished and sample.verdict in WRONG]
    samples = [sample for sample in samples if sample.problem in buffers]
    traces = run.language.trace_all([(buffers[one.problem].problem, one.text) for one in samples])
    seen: set[Preference] = set()
    for sample, trace in zip(samples, traces, strict=True):
        found = _preference(buffers[sample.problem], trace, wording)
        if found is not None and found not in seen:
            seen.add(found)
            yield found


def _preference(buffer: SolutionBuffer, trace: Trace, wording: Wording) -> Preference | None:
    if not buffer.fully_correct:
        return None
    wrong = trace.solution
    right = max(buffer.fully_correct, key=lambda one: _common(one, wrong))
    shared = _common(right, wrong)
    if shared in (len(wrong), len(right)):  # one begins the other: they never part
        return None
    # The next step is another one but still right: the sample goes wrong later, on a way of its own.
    if shared < len(trace.states) and trace.states[shared] in buffer.prefixes:
        return None
    # As text: a message cannot stop in the middle of an answer.
    prompt = wording.text(buffer.language.question(buffer.problem), right.steps[:shared])
    chosen, rejected = wording.going_on(right.steps[shared:]), wording.going_on(wrong.steps[shared:])
    return Preference(prompt, chosen, rejected, buffer.problem.id)


def _common(first: Solution, second: Solution) -> int:
    """How many steps two solutions begin with alike."""
    differs = deviation(first, second)
    return len(first) if differs is None else differs


def preference_rows(run: Run, trainer: str) -> Iterator[Row]:
    """Rows for `dpo` (prompt, chosen, rejected) or for `kto` (prompt, completion, label), each once."""
    seen: set[tuple[str, str]] = set()
    for one in preferences(run):
        if trainer == "dpo":
            yield vars(one)
            continue
        for completion, label in ((one.chosen, True), (one.rejected, False)):
            if (one.prompt, completion) not in seen:
                seen.add((one.prompt, completion))
                row = {"prompt": one.prompt, "completion": completion, "label": label}
                yield row | {"problem_id": one.problem_id}


def export_preferences(run: Run, path: Path, trainer: str) -> Counter[str]:
    """Write them as JSONL; returns how many pairs, or how many wanted and unwanted completions."""

    def kind_of(row: Row) -> str:
        return "pairs" if trainer == "dpo" else "wanted" if row["label"] else "unwanted"

    return write_counted(path, preference_rows(run, trainer), kind_of)
