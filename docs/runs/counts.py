"""How many samples of every problem were right: all that pass@k and its intervals need, in a small file.

    python docs/runs/counts.py write runs/short_mle runs/short_fcs_pcs   # evaluations named `test`
    python docs/runs/counts.py compare short_mle,short_mle_s1 short_fcs_pcs,short_fcs_pcs_s1
    python docs/runs/counts.py templates geo_mle,geo_mle_s1 geo_fcs,geo_fcs_s1

`write` puts them into counts.json beside this file; `compare` prints both sides in % and their difference,
problem by problem, with its 95% interval. Names with a comma between them are seeds. `templates` prints the
difference with an interval over templates, which the ids of GeoQuery's problems name: `geo-3-17` has 3.
"""

import json
import sys
from pathlib import Path
from random import Random

from partway.evaluation import Estimate
from partway.evaluation.results import metric_estimates
from partway.measuring.paired import gain_estimates
from partway.measuring.result_files import read_results
from passatk import pass_at_k

COUNTS = Path(__file__).with_name("counts.json")
KS = (1, 5, 10, 20, 50, 80)


def main(action: str, *words: str) -> None:
    if action == "write":
        write([Path(word) for word in words])
    elif action == "templates":
        show_templates(*(word.split(",") for word in words))
    else:
        show(*(word.split(",") for word in words))


def write(directories: list[Path]) -> None:
    """Add the test evaluation of each run, or of what was drawn from its model alone, to the file."""
    content = read()
    for directory in directories:
        [summary] = directory.glob("**/test.json")
        content["evaluations"][directory.name] = counts_of(summary, content["problems"])
    lines = [
        f"{json.dumps(group)}: {{\n"
        + ",\n".join(
            f"{json.dumps(name)}: {json.dumps(content[group][name])}" for name in sorted(content[group])
        )
        + "\n}"
        for group in ("problems", "evaluations")
    ]
    COUNTS.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


def counts_of(summary: Path, problems: dict[str, list[str]]) -> dict:
    """Of each problem: right and distinct samples, and whether the one at a low temperature is right."""
    results, plan = read_results(summary)
    rows = sorted(results, key=lambda result: result.task_id)  # by id: an interval belongs to an order
    assert all(row.drawn == plan.samples and len(row.pass1) <= 1 for row in rows), "as planned"
    alone = {
        "pass1_temperature": plan.pass1_temperature,
        "pass1_right": [int(one.passed) for row in rows for one in row.pass1],
    }
    return {
        "problems": name_of([row.task_id for row in rows], problems),
        "samples": plan.samples,
        "temperature": plan.settings.temperature,
        "right": [sum(one.sample.count for one in row.samples if one.passed) for row in rows],
        "distinct": [len({one.sample.text for one in row.samples}) for row in rows],
        **(alone if rows[0].pass1 else {}),
    }


def name_of(ids: list[str], problems: dict[str, list[str]]) -> str:
    """What these problems are called, of which many evaluations are; they are named after the first one."""
    name = next((name for name, known in problems.items() if known == ids), f"{len(ids)} from {ids[0]}")
    problems[name] = ids
    return name


def read() -> dict[str, dict]:
    if not COUNTS.exists():
        return {"problems": {}, "evaluations": {}}
    return json.loads(COUNTS.read_text(encoding="utf-8"))


def scores(counts: dict) -> dict[str, list[float]]:
    """What every problem scores; pass@1 is the sample at a low temperature, where one was drawn."""
    n = counts["samples"]
    scores = {f"pass@{k}": [pass_at_k(n, right, k) for right in counts["right"]] for k in KS if k <= n}
    if "pass1_right" in counts:
        scores |= {
            "pass@1_at_temperature": scores["pass@1"],
            "pass@1": list(map(float, counts["pass1_right"])),
        }
    return scores | {"unique": [distinct / n for distinct in counts.get("distinct", ())]}


def compare(first: list[str], second: list[str]) -> dict[str, tuple[Estimate, Estimate, Estimate]]:
    """Each metric of the two sides, and the second minus the first."""
    content = read()
    sides = [[content["evaluations"][name] for name in names] for names in (first, second)]
    problems = [content["problems"][counts["problems"]] for counts in sides[0]]
    assert [counts["problems"] for counts in sides[0]] == [counts["problems"] for counts in sides[1]], (
        "paired"
    )
    sides = [[scores(counts) for counts in side] for side in sides]
    ones, twos = (metric_estimates(side, problems) for side in sides)
    gains = gain_estimates(sides[1], sides[0], problems)
    return {name: (ones[name], twos[name], gain) for name, gain in gains.items()}


def show(first: list[str], second: list[str]) -> None:
    for name, (one, two, gain) in compare(first, second).items():
        print(f"{name:<22} {percent(one)}  {percent(two)}  {signed(gain)}")


def show_templates(first: list[str], second: list[str]) -> None:
    """Differences with intervals in which questions that differ in their values only come and go together."""
    content = read()
    ids = content["problems"][content["evaluations"][first[0]]["problems"]]
    sides = [[scores(content["evaluations"][name]) for name in names] for names in (first, second)]
    for metric in (name for name in sides[0][0] if name.startswith("pass@")):
        groups: dict[str, list[float]] = {}
        for row, name in enumerate(ids):
            one, two = (sum(seed[metric][row] for seed in side) / len(side) for side in sides)
            groups.setdefault(name.rpartition("-")[0], []).append(two - one)
        print(f"{metric:<22} {signed(resampled(list(groups.values())))}")


def resampled(groups: list[list[float]]) -> Estimate:
    """The mean of all values, and its 95% interval over groups: 10,000 resamples."""
    chosen = Random(0)
    draws = (chosen.choices(groups, k=len(groups)) for _ in range(10_000))
    means = sorted(sum(map(sum, drawn)) / sum(map(len, drawn)) for drawn in draws)
    return Estimate(sum(map(sum, groups)) / sum(map(len, groups)), means[250], means[-251])


def percent(found: Estimate) -> str:
    return f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def signed(found: Estimate) -> str:
    """A difference as the documentation spells it."""
    return f"{100 * found.value:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


if __name__ == "__main__":
    main(*sys.argv[1:])
