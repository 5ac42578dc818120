r"""Says what runs with few references found on GeoQuery, and which test problems they solve.

    python configs/geoquery/templates.py data/geoquery-question runs/geo_quarter_mle runs/geo_quarter_fcs_pcs

For each run: of how many problems without a reference it holds a solution, how many of these solutions are
the hidden reference to the letter and how many give other rows than it on changed databases (luck), how many
of its samples were right beginnings, and how much of the test problems it solves (mean of the samples), by
what training had of their template: GeoQuery says which questions differ in their values only.
"""

import argparse
from collections import Counter
from pathlib import Path

from partway.beyond.variation import audit
from partway.buffer import Verdict
from partway.measuring.result_files import read_results
from partway.problem import Problem
from partway.problems import load_problems
from partway.runs import Run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with train.jsonl and test.jsonl, by partway data sql")
    parser.add_argument("runs", nargs="+", type=Path, help="runs on it, with evaluations/test.json")
    given = parser.parse_args()
    for directory in given.runs:
        run = Run.at(directory)
        hidden, test = (
            load_problems(given.data / f"{split}.jsonl", language=run.language) for split in ("train", "test")
        )
        print(f"{directory.name}:\n  {found(run, {problem.id: problem for problem in hidden})}")
        print(f"  {beginnings(run)}\n  {solved(run, test)}")


def found(run: Run, hidden: dict[str, Problem]) -> str:
    """What the buffers hold of problems without a reference."""
    buffers = [buffer for buffer in run.buffers().values() if buffer.problem.reference is None]
    pairs = [(hidden[b.problem.id], solution) for b in buffers for solution in b.fully_correct]
    references = [p.reference for p in run.problems() if p.reference is not None]
    written = sum(solution == problem.reference for problem, solution in pairs)
    audits = [audit(problem, solution, run.language) for problem, solution in pairs]
    lucky = sum(one.verdict == "spurious" for one in audits)
    return (
        f"{len(references)} references; solved {sum(bool(b.fully_correct) for b in buffers)} of "
        f"{len(buffers)} other problems, with {len(pairs)} solutions: {written} are the hidden reference, "
        f"{lucky} give other rows on changed databases ({100 * lucky / max(len(pairs), 1):.0f}%)"
    )


def beginnings(run: Run) -> str:
    """How many samples began right."""
    counts: Counter[Verdict | None] = Counter()
    for sample in run.samples():
        counts[sample.verdict] += sample.count
    new, known = counts[Verdict.NEW_PARTIALLY_CORRECT], counts[Verdict.KNOWN_PARTIALLY_CORRECT]
    return f"{counts.total():,} samples: {new:,} new right beginnings, {known:,} known ones"


def solved(run: Run, test: list[Problem]) -> str:
    """The share of right samples on test problems, by their template."""
    results, _ = read_results(run.evaluation_file("test"))
    right = {one.task_id: sum(s.sample.count for s in one.samples if s.passed) / one.drawn for one in results}
    train = run.problems()
    labelled = {template(problem) for problem in train if problem.reference is not None}
    answered = {template(problem) for problem in train} - labelled
    groups = {
        "a reference": [p for p in test if template(p) in labelled],
        "answers only": [p for p in test if template(p) in answered],
        "nothing": [p for p in test if template(p) not in labelled | answered],
    }
    told = [
        f"{name} {100 * sum(right[p.id] for p in own) / len(own):.1f}% of {len(own)}"
        for name, own in groups.items()
        if own
    ]
    return f"test problems, by what training had of their template: {', '.join(told)}"


def template(problem: Problem) -> object:
    return (problem.meta or {})["template"]


if __name__ == "__main__":
    main()
