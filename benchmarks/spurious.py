"""`python -m benchmarks spurious DEMO`: how often the check for solutions right by luck is right itself.

The generator of story problems knows the true relation of its quantities, so every solution that the models
of a demo sampled and that gives the right answer can be labelled without reading it.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import click

from benchmarks.tables import print_table
from partway.beyond.variation import audit
from partway.demo.storyproblems import generate_problems
from partway.errors import RunError
from partway.language import PYTHON, Trace, is_correct, trace_all
from partway.problem import Problem
from partway.runs import Run, read_rows
from partway.solution import Solution

CONSTANT = ""  # a literal that is no quantity of the story
ROUNDS = 4  # of changed numbers: agreeing by chance in all of them is out of the question
MAX_MATCHINGS = 512  # readings of a solution's numbers as the story's
MOST_SHOWN = 50  # of those about which the check is wrong


@click.command()
@click.argument(
    "demos",
    metavar="DEMO...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the JSON object here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(demos: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Precision and recall of `spurious` on all samples of `partway demo --paper --out DEMO`.

    Every different solution with the right answer, references apart, is labelled with the true relation of
    its story.

    \b
    Examples:
      python -m benchmarks spurious demo --out spurious.json
    """
    stories, texts = sampled(demos)
    judged = [Judged.of(story, solution) for story, solution in right_samples(stories, texts)]
    numbers = summary(Counter((one.is_lucky, one.verdict) for one in judged))
    wrong = [asdict(one) for one in judged if one.is_wrong]
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    result = {"stories": len(stories), **machine, **numbers, "wrong": wrong[:MOST_SHOWN]}
    if out is not None:
        out.write_text(json.dumps(result, indent=1), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(result))
        return
    rows = [
        (key, f"{value:.3f}" if isinstance(value, float) else str(value)) for key, value in numbers.items()
    ]
    print_table("solutions with the right answer", ["", "measured"], rows)


@dataclass(frozen=True)
class Judged:
    """A solution with the right answer: what it is in truth, None if nobody can say, and what was said."""

    story: str
    solution: str
    is_lucky: bool | None
    verdict: str
    reason: str

    @classmethod
    def of(cls, story: Problem, solution: Solution) -> Judged:
        """Label a solution, and ask the check about it."""
        assert story.reference is not None, "stories are generated with their references"
        found = audit(story, solution, PYTHON)
        return cls(story.id, solution.text, is_lucky(story, solution), found.verdict, found.reason)

    @property
    def is_wrong(self) -> bool:
        """Whether the check says the opposite of the truth."""
        return (self.is_lucky, self.verdict) in ((True, "confirmed"), (False, "spurious"))


def summary(counts: Mapping[tuple[bool | None, str], int]) -> dict[str, float]:
    """How labels and verdicts meet; precision and recall of the verdict `spurious`."""
    labels = {True: "lucky", False: "right", None: "unlabelled"}
    lucky = sum(count for (label, _), count in counts.items() if label)
    found, alarms = counts.get((True, "spurious"), 0), counts.get((False, "spurious"), 0)
    cells = {f"{labels[label]}, {verdict}": n for (label, verdict), n in sorted(counts.items(), key=str)}
    return {
        "solutions": sum(counts.values()),
        "right by luck": lucky,
        **cells,
        "precision": found / max(1, found + alarms),
        "recall": found / max(1, lucky),
    }


def sampled(demos: Sequence[Path]) -> tuple[dict[str, Problem], dict[str, set[str]]]:
    """The stories of demos that were sampled, and the different texts of each."""
    texts: defaultdict[str, set[str]] = defaultdict(set)
    runs = [Run(path) for demo in demos for path in sorted(demo.iterdir())]
    for run in filter(lambda run: run.is_started, runs):
        for sample in run.samples():
            texts[sample.problem].add(sample.prefix + sample.completion)
        for file in run.evaluations_directory.glob("*.jsonl"):
            for row in read_rows(file):
                texts[row["task_id"]].add(row["completion"])
    if not texts:
        raise RunError(f"{demos[0]}: no samples here; make some: partway demo --paper --out {demos[0]}")
    return _generated_again(texts), texts


def _generated_again(ids: Iterable[str]) -> dict[str, Problem]:
    """The stories with these ids, `story-SEED-NUMBER`: what a run keeps of them lacks the test problems."""
    highest: Counter[int] = Counter()
    for id in ids:
        _, seed, number = id.split("-")
        highest[int(seed)] = max(highest[int(seed)], int(number))
    made = [generate_problems(n + 1, seed=seed, difficulty="easy") for seed, n in highest.items()]
    by_id = {story.id: story for stories in made for story in stories}
    return {id: by_id[id] for id in ids}


def right_samples(
    stories: Mapping[str, Problem], texts: Mapping[str, set[str]]
) -> Iterator[tuple[Problem, Solution]]:
    """Different solutions that give the right answer and are not the reference."""
    for id, story in stories.items():
        traces = trace_all(sorted(texts[id]))
        right = {trace.solution for trace in traces if is_correct(trace.answer, story.answer)}
        for solution in sorted(right - {story.reference}, key=str):
            yield story, solution


def is_lucky(story: Problem, solution: Solution) -> bool | None:
    """Whether no reading of a solution's numbers as the story's quantities makes it the story's relation.

    Unlike the check, this knows which number is which, and changes all of them (2 and 3 too), by far. None if
    there are too many readings to try.
    """
    tree = ast.parse(solution.text)
    literals = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
    values: list[Any] = [literal.value for literal in literals]
    numbers: Mapping[str, Any] = {**story.meta["numbers"], **story.meta["distractors"]}
    names = [[*(name for name in numbers if numbers[name] == value), CONSTANT] for value in values]
    if prod(map(len, names)) > MAX_MATCHINGS:
        return None
    rng = random.Random(story.id)
    # Large odd-looking numbers: none is a sum, a product or a double of others by chance.
    rounds = [{name: rng.randrange(1009, 99991) for name in numbers} for _ in range(ROUNDS)]
    expected = trace_all([_relation(story, changed) for changed in rounds])
    return not any(
        _agrees(tree, literals, values, matching, rounds, expected) for matching in product(*names)
    )


def _agrees(
    tree: ast.Module,
    literals: list[ast.Constant],
    values: list[Any],
    matching: tuple[str, ...],
    rounds: list[dict[str, int]],
    expected: list[Trace],
) -> bool:
    for changed, right in zip(rounds, expected, strict=True):
        for literal, value, name in zip(literals, values, matching, strict=True):
            literal.value = changed.get(name, value)
        (given,) = trace_all([ast.unparse(tree)])
        if not given.has_answer or not is_correct(given.answer, right.answer, rel_tol=1e-7, abs_tol=1e-7):
            return False
    return True


def _relation(story: Problem, numbers: Mapping[str, Any]) -> str:
    """The story's own formulas as a program, with these numbers."""
    lines = [f"{name} = {value}" for name, value in numbers.items()]
    formulas: Mapping[str, str] = story.meta["formulas"]
    return "\n".join([*lines, *(f"{name} = {formula}" for name, formula in formulas.items())])
