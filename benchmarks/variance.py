"""`python -m benchmarks variance`: how often a group of samples teaches a policy gradient nothing.

If all samples of a group earn the same, their advantages are zero. With 0/1 rewards that is so for every
problem that is too easy or too hard; trace credit tells samples apart that are wrong in different places.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from benchmarks.tables import COUNT, print_table
from partway.errors import ProblemError


@click.command()
@click.argument("samples", type=click.Path(path_type=Path, exists=True), metavar="SAMPLES")
@click.option("--problems", "file", required=True, metavar="FILE", help="With references.")
@click.option("--groups", default="4,8,16", show_default=True, help="Samples in a group.")
@click.option("--most", type=COUNT, help="Look at the first so many problems only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(samples: Path, file: str, groups: str, most: int | None, as_json: bool) -> None:
    """The share of groups whose samples all earn the same, with 0/1 rewards and with trace credit.

    SAMPLES is an evaluation (or its directory) with at least as many samples as the largest group. A share is
    exact: it is that of all groups that can be drawn from a problem's samples, averaged over problems.

    \b
    Examples:
      partway evaluate smollm2 --problems gsm8k/test.jsonl --limit 100 --samples 16 --temperature 1 --out s
      python -m benchmarks variance s --problems gsm8k/test.jsonl
    """
    sizes = [int(size) for size in groups.split(",")]
    result = measure(samples, file, sizes, most)
    if as_json:
        click.echo(json.dumps(result))
        return
    rows = [
        [str(row["group"]), *(f"{100 * row[key]:.1f}%" for key in ("answer", "trace"))]
        for row in result["rows"]
    ]
    title = f"groups without variance, {result['problems']} problems, {100 * result['right']:.1f}% right"
    print_table(title, ["samples", "0/1", "trace credit"], rows)


def measure(path: Path, file: str, sizes: Sequence[int], most: int | None = None) -> dict[str, Any]:
    """For every size the share of groups without variance, by reward."""
    from partway.measuring.result_files import read_results
    from partway.problems import load_problems

    problems = {problem.id: problem for problem in load_problems(file)}
    results, _ = read_results(path)
    known = [result for result in results if result.task_id in problems][:most]
    if not known or min(result.drawn for result in known) < max(sizes):
        raise ProblemError(
            f"{path}: groups of {max(sizes)} need as many samples of every problem in {file}; draw more"
        )
    counted = [_rewards(problems[result.task_id], result.samples) for result in known]
    rows = [
        {
            "group": size,
            "answer": fmean(alike(answer, size) for answer, _ in counted),
            "trace": fmean(alike(trace, size) for _, trace in counted),
        }
        for size in sizes
    ]
    right = fmean(answer[1.0] / answer.total() for answer, _ in counted)
    return {"problems": len(known), "right": right, "rows": rows}


def _rewards(problem: Any, samples: Sequence[Any]) -> tuple[Counter[float], Counter[float]]:
    """How many samples earn how much, by answer alone and with trace credit."""
    from partway.rewards import trace_credits

    texts = [judged.sample.completion for judged in samples]
    credits = trace_credits(texts, [problem] * len(texts))
    answer: Counter[float] = Counter()
    trace: Counter[float] = Counter()
    for judged, credit in zip(samples, credits, strict=True):
        assert credit is not None, "the sandbox judged these samples before"
        answer[float(credit == 1.0)] += judged.sample.count
        trace[credit] += judged.sample.count
    return answer, trace


def alike(rewards: Counter[float], size: int) -> float:
    """The share of all groups of `size` samples in which all earn the same.

    >>> alike(Counter({0.0: 3, 1.0: 1}), 2)
    0.5
    """
    return sum(comb(count, size) for count in rewards.values()) / comb(rewards.total(), size)
