"""Reads one run directory into plain numbers: settings, curves, results, kept solutions, time.

Nothing is averaged over runs here (`study`), nothing is drawn (`figures`). A run that is still training or
lacks some files gives what it has and says what is missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from partway.evaluation import Estimate
from partway.evaluation.results import scores_of
from partway.language.named import flat
from partway.measuring.result_files import has_samples, plan_of, read_results, read_summary
from partway.runs import Row, Run, read_rows
from partway.runs.checkpoints import PROGRESS, RunProgress
from passatk import Scores

SPANS = ("exploring", "executing", "learning", "evaluating", "saving", "other")


Curve = Mapping[int, float]  # a number over training: by step what was logged


@dataclass(frozen=True)
class Result:
    """An evaluation: every metric as recorded and, if the samples are there, as every problem scores."""

    step: int | None
    problems: int
    samples: int
    metrics: Mapping[str, Estimate]
    path: Path | None = None  # of its summary

    @cached_property
    def scores(self) -> Scores:
        """Every problem's share of every metric, none without samples."""
        if self.path is None or not has_samples(self.path):
            return {}
        return scores_of(*read_results(self.path))

    @cached_property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of the problems, in the order of their scores; none without samples."""
        if self.path is None or not has_samples(self.path):
            return ()
        return tuple(sorted(result.task_id for result in read_results(self.path)[0]))

    @property
    def ks(self) -> tuple[int, ...]:
        """Every k for which there is a pass@k."""
        return passes_in(self.metrics)


@dataclass(frozen=True)
class KeptSolutions:
    """How many solutions of each kind the buffers hold at a step, by problem."""

    step: int
    kinds: Mapping[str, Counter[str]]

    def of_kind(self, kind: str) -> list[int]:
        """How many of this kind each problem has."""
        return [kinds[kind] for kinds in self.kinds.values()]


@dataclass(frozen=True)
class Effort:
    """What one part of training took: seconds, and tokens and samples where they are known."""

    seconds: float
    tokens: int | None = None
    samples: int | None = None


@dataclass(frozen=True)
class RunSummary:
    """A run in numbers."""

    directory: Path
    config: Row
    environment: Row
    seed: int
    step: int
    is_finished: bool
    curves: Mapping[str, Curve]
    results: Mapping[str, Result]
    kept: KeptSolutions | None
    work: Mapping[str, Effort]
    missing: tuple[str, ...] = field(default=())
    temperatures: Mapping[float, Result] = field(default_factory=dict)
    chance: Result | None = None

    @property
    def state(self) -> str:
        """Whether it came to its end, or how far it is."""
        if self.is_finished:
            return "finished"
        steps = self.config.get("max_steps")  # -1 where epochs are counted instead
        total = f" of {steps:,}" if isinstance(steps, int) and steps > 0 else ""
        return f"step {self.step:,}{total}"


def summarize(run: Run | Path) -> RunSummary:
    """Read all that reports need of a run."""
    run = Run.at(run.directory if isinstance(run, Run) else run)
    config = flat(run.config)
    environment = run.environment if run.environment_file.exists() else {}
    metrics = run.metrics()
    curves = curves_of(metrics)
    results = results_of(run, config)
    kept = read_kept(run)
    work = work_of(run, curves)
    # What a reader of the report would miss.
    missing = {
        "environment.json is not there: versions and machine are unknown": not run.environment_file.exists(),
        "nothing is logged yet: no curves": not metrics,
        "there is no evaluation yet: no pass@k": not results,
        "no checkpoint was written yet: no kept solutions": kept is None,
        "timings.jsonl is not there: no times": not work,
        f"of the evaluations {', '.join(_of_the_model(run))} none is called test: none is shown": (
            "test" not in results and len(_of_the_model(run)) > 1
        ),
    }
    lost = (f"{name} has lost lines" for name in lost_logs(run))
    return RunSummary(
        run.directory,
        config,
        environment,
        int(config["seed"] if "seed" in config else environment.get("seed", 42)),  # transformers' default
        max((int(line["step"]) for line in metrics), default=0),
        run.is_finished,
        curves,
        results,
        kept,
        work,
        (*(remark for remark, is_missing in missing.items() if is_missing), *lost),
        temperatures_of(run),
        chance_of(run),
    )


def curves_of(lines: Sequence[Row]) -> dict[str, Curve]:
    """Every number in the lines of metrics.jsonl over the steps at which it was logged."""
    points: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for line in lines:
        for key, value in line.items():
            # `True` is an int to Python; a switch is not a number.
            if key != "step" and isinstance(value, (int, float)) and not isinstance(value, bool):
                points[key][int(line["step"])] = float(value)
    return dict(points)


def results_of(run: Run, config: Row) -> dict[str, Result]:
    """The evaluation on `test`, or the only one under another name, and on `dev` at the step chosen."""
    evaluations = run.evaluations()
    step = run.final_step if run.final_step in evaluations else chosen_step(evaluations, config)
    results = {}
    if step is not None:
        results["dev"] = read_result(run.evaluation_file(step), step)
    names = _of_the_model(run)
    if "test" in names or len(names) == 1:  # it may be called as its file of problems was
        file = run.evaluation_file("test" if "test" in names else names[0])
        results["test"] = read_result(file, step if run.final_step is None else run.final_step)
    return results


def _of_the_model(run: Run) -> list[str]:
    """The evaluations that were asked for, without those of chance and of several temperatures."""
    others = (name for name in run.evaluation_names() if not is_chance(name))
    return [name for name in others if temperature_in(name) is None]


def temperatures_of(run: Run) -> dict[float, Result]:
    """What `partway evaluate RUN --temperatures` has drawn, of the file of problems with most of them."""
    found: defaultdict[str, dict[float, Result]] = defaultdict(dict)
    for name in run.evaluation_names():
        if (temperature := temperature_in(name)) is not None:
            result = read_result(run.evaluation_file(name), None)
            found[name.rpartition("-T")[0]][temperature] = result
    return max(found.values(), key=len, default={})


def chance_of(run: Run) -> Result | None:
    """What `partway evaluate --chance` has drawn beside the run's results; of several, on test."""
    names = filter(is_chance, run.evaluation_names())
    name = max(names, key=lambda one: one in ("chance", "test-chance"), default=None)
    return None if name is None else read_result(run.evaluation_file(name), None)


def is_chance(name: str) -> bool:
    """Whether an evaluation of this name has no model."""
    return name.rpartition("-")[2] == "chance"


def temperature_in(name: str) -> float | None:
    """The temperature that the name of an evaluation ends with, if any.

    >>> temperature_in("test-T0.8"), temperature_in("test")
    (0.8, None)
    """
    try:
        return float(name.rpartition("-T")[2]) if "-T" in name else None
    except ValueError:
        return None


def chosen_step(evaluations: Mapping[int, Row], config: Row) -> int | None:
    """The step whose model is used: the first with the best metric, or the last if the settings say so."""
    name = str(config.get("metric_for_best_model") or "eval_pass@1").removeprefix("eval_")
    values = {
        step: row["metrics"][name]["value"] for step, row in evaluations.items() if name in row["metrics"]
    }
    if not values or not config.get("load_best_model_at_end", True):
        return max(evaluations, default=None)
    return max(values, key=lambda step: (values[step], -step))


def read_result(path: Path, step: int | None) -> Result:
    """The evaluation whose summary is `path`."""
    summary = read_summary(path)
    plan = plan_of(summary)
    metrics = {name: Estimate(e["value"], e["low"], e["high"]) for name, e in summary["metrics"].items()}
    return Result(step, summary["problems"], plan.samples, metrics, path)


def passes_in(metrics: Iterable[str]) -> tuple[int, ...]:
    """Every k of the names `pass@k` among `metrics`, ascending.

    >>> passes_in(["pass@10", "pass@1", "pass@1", "pass@1_at_temperature", "maj@5"])
    (1, 10)
    """
    numbers = {name.removeprefix("pass@") for name in metrics if name.startswith("pass@")}
    return tuple(sorted(int(number) for number in numbers if number.isdigit()))


def read_kept(run: Run) -> KeptSolutions | None:
    """How many solutions are kept, None before the first checkpoint."""
    if (file := run.buffer_file()) is None:
        return None
    kinds = {row["id"]: Counter(kept["kind"] for kept in row["solutions"]) for row in read_rows(file)}
    # The final buffers have no step in their name: they are those of the last one.
    return KeptSolutions(run.buffer_step(file) or run.last_step(), kinds)


def work_of(run: Run, curves: Mapping[str, Curve]) -> dict[str, Effort]:
    """Seconds, tokens and samples that each part of training took so far, none without timings."""
    timings = run.timings()
    if not timings:
        return {}
    seconds = {span: sum(line.get(f"time/{span}", 0.0) for line in timings) for span in SPANS}
    drawn, length = (curves.get(key, {}) for key in ("samples/drawn", "completions/mean_length"))
    sampled = sum(drawn.get(step, 0) * mean for step, mean in length.items())
    *_, learned = curves.get("num_tokens", {0: 0.0}).values()  # it counts from the beginning
    evaluations = run.evaluations()
    # The samples of evaluations are not logged: each has as many as its plan says.
    evaluated = sum(e["problems"] * (e["samples"] + e["pass1_samples"]) for e in evaluations.values())
    drawn_in_evaluations = curves.get("eval_tokens_drawn", {}).values()
    known = {
        "exploring": {"tokens": round(sampled), "samples": round(sum(drawn.values()))},
        "executing": {"samples": round(sum(drawn.values()))},
        "learning": {"tokens": round(learned)},
        "evaluating": {"samples": evaluated},
    }
    if len(drawn_in_evaluations) == len(evaluations):
        known["evaluating"]["tokens"] = round(sum(drawn_in_evaluations))
    return {span: Effort(seconds[span], **known.get(span, {})) for span in SPANS}


def lost_logs(run: Run) -> list[str]:
    """Growing files that have lost lines: found when the run was resumed, or since its last checkpoint."""
    lives = run.environment.get("resumed", []) if run.environment_file.exists() else []
    lost = {name for life in lives for name in life.get("lost", [])}
    *_, last = run.directory, *run.checkpoints().values()
    lengths = RunProgress.read(last).files if (last / PROGRESS).is_file() else {}
    return sorted(lost | {name for name, length in lengths.items() if _size(run.directory / name) < length})


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
