"""`python -m benchmarks spurious`: how often the check for solutions that are right by luck is right itself.

The generator of story problems knows the true relation of its quantities, so every solution that the built-in
model samples and that gives the right answer can be labelled without reading it.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import click

from benchmarks.tables import COUNT, print_table
from partway.datasets.storyproblems import generate_problems
from partway.execution import PYTHON, Trace, is_correct
from partway.problem import Problem
from partway.solution import EMPTY, Solution

CONSTANT = ""  # a literal that is no quantity of the story
ROUNDS = 4
TRAINING_PROBLEMS = 400  # the model as it comes solves too few to find many that are right by luck
DISTINCT_SHARE = 0.5
MAX_MATCHINGS = 512
MOST_SHOWN = 50  # of those about which the check is wrong


@click.command()
@click.option("--problems", type=COUNT, default=400, show_default=True, help="How many stories.")
@click.option("--samples", type=COUNT, default=40, show_default=True, help="Samples of each.")
@click.option("--temperature", default=1.0, show_default=True, help="Their temperature.")
@click.option("--seed", default=0, show_default=True, help="Of stories and samples.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the JSON object here too."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    problems: int, samples: int, temperature: float, seed: int, out: Path | None, as_json: bool
) -> None:
    """Precision and recall of `spurious`, on samples labelled with the true relation of each story.

    \b
    Examples:
      python -m benchmarks spurious --out spurious.json
      python -m benchmarks spurious --problems 50 --samples 20 --json
    """
    stories = generate_problems(problems, seed=seed)
    judged = [
        Judged.of(story, solution)
        for story, solution in right_samples(stories, samples, temperature, seed)
        if story.reference is not None
    ]
    numbers = summary(Counter((one.is_lucky, one.verdict) for one in judged))
    wrong = [asdict(one) for one in judged if one.is_wrong]
    settings = {"problems": problems, "samples": samples, "temperature": temperature, "seed": seed}
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    result = {**settings, **machine, **numbers, "wrong": wrong[:MOST_SHOWN]}
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
        found = PYTHON.audit(story.reference, solution, story.question)
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


def right_samples(
    stories: list[Problem], samples: int, temperature: float, seed: int
) -> Iterator[tuple[Problem, Solution]]:
    """Different solutions that give the right answer, of the built-in model tuned on other stories."""
    from benchmarks.sampling_model import fine_tuned_to_share
    from partway.models.engine import Request
    from partway.models.local_engine import LocalEngine
    from partway.models.settings import SamplingSettings

    settings = SamplingSettings(temperature, 1.0, 0, 256)
    others = generate_problems(TRAINING_PROBLEMS, seed=seed + 1)
    model = fine_tuned_to_share(others, DISTINCT_SHARE, 20, settings, seed, report=lambda line: None)
    requests = [Request(story, EMPTY, samples) for story in stories]
    drawn = LocalEngine(model).complete(requests, settings, seed)
    for story, draws in zip(stories, drawn, strict=True):
        traces = PYTHON.trace_all([draw.text for draw in draws])
        right = {trace.solution for trace in traces if PYTHON.is_correct(trace, story.answer)}
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
    rounds = [{name: rng.randrange(1009, 99991) for name in numbers} for _ in range(ROUNDS)]
    expected = PYTHON.trace_all([_relation(story, changed) for changed in rounds])
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
        (given,) = PYTHON.trace_all([ast.unparse(tree)])
        if not given.has_answer or not is_correct(given.answer, right.answer, rel_tol=1e-7, abs_tol=1e-7):
            return False
    return True


def _relation(story: Problem, numbers: Mapping[str, Any]) -> str:
    """The story's own formulas as a program, with these numbers."""
    lines = [f"{name} = {value}" for name, value in numbers.items()]
    formulas: Mapping[str, str] = story.meta["formulas"]
    return "\n".join([*lines, *(f"{name} = {formula}" for name, formula in formulas.items())])
