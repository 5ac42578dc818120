"""`partway evaluate`: measures a model, a run or a model on a server, and compares two results."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partway.cli.options import AS_JSON, counted, declared, length_for, say_next, speaks, takes
from partway.errors import ConfigError, EngineError, ProblemError, RunError, shown
from partway.evaluation.evaluate import EvaluationProgress
from partway.measuring.engine_options import EvaluateOptions, opened_engine

if TYPE_CHECKING:
    from partway.cli.progress import Bar
    from partway.evaluation import EvaluationPlan
    from partway.measuring.paired import Comparison
    from partway.models.engine import Engine
    from partway.problem import Problem
    from partway.runs import Run

logger = logging.getLogger(__name__)
MEANINGS = {
    "executable": "runs to its end",
    "execution_accuracy": "right rows",
    "unique": "distinct texts",
    "unique_canonical": "distinct, spelling aside",
    "unique_alpha": "distinct, names aside",
}


@click.command()
@takes(EvaluateOptions)
@speaks
@declared(
    "--compare",
    nargs=2,
    multiple=True,
    metavar="A B",
    help="Compare two results: how much better B is than A. Give it once for each seed to compare over all "
    "of them. With --problems, only the problems of that file count.",
)
@AS_JSON
@click.pass_context
def command(ctx: click.Context, /, compare: Sequence[tuple[str, str]], as_json: bool, **options: Any) -> None:
    """Measure how many problems a model solves: pass@k, maj@k and the shares of executable and distinct
    samples, with 95% intervals.

    For pass@1 one more sample of each problem is drawn, at temperature 0.2 as in the paper. If an evaluation
    is interrupted, the same command continues it. With --engine, MODEL is the name by which the server knows
    the model, and its key comes from the environment variable PARTWAY_API_KEY.

    \b
    Examples:
      partway evaluate runs/gsm8k --problems test.jsonl
      partway evaluate ./model --problems test.jsonl --samples 20 --k 1,20 --json
      partway evaluate --engine URL --tokenizer runs/gsm8k --problems test.jsonl
      partway evaluate --engine URL --few-shot train.jsonl --problems test.jsonl
      partway evaluate runs/gsm8k --problems dev.jsonl --temperatures 0.4,0.8,1.2
      partway evaluate --chance train.jsonl --problems test.jsonl
      partway evaluate --compare mle/test.json pcs/test.json
      partway evaluate --compare mle/test.json pcs/test.json --problems hard.jsonl
      partway evaluate --compare mle.json pcs.json --compare mle1.json pcs1.json
    """
    if compare:
        from partway.measuring.paired import compare as compare_results
        from partway.problems import load_problems

        given = EvaluateOptions(**options)
        file, language = given.problems, given.language
        only = {problem.id for problem in load_problems(file, language=language)} if file else None
        first, second = zip(*compare, strict=True)
        comparison = compare_results(first, second, only=only)
        if as_json:
            names = {"first": ", ".join(first), "second": ", ".join(second)}
            click.echo(json.dumps({**names, **comparison.to_json()}))
        else:
            show_comparison(comparison, ", ".join(first), ", ".join(second))
        return
    asked = EvaluateOptions(**options)
    summaries = _evaluate(asked, quiet=ctx.obj["quiet"])
    if as_json:
        click.echo(json.dumps(summaries if asked.temperatures else summaries[0]))
        return
    show_temperatures(summaries) if asked.temperatures else show_summary(*summaries)
    if (run := _run(asked)) is not None:
        say_next(f"partway report {run.directory}")
    elif asked.model and not asked.engine:
        say_next(f"partway sample {asked.model}")
    elif not asked.temperatures:
        say_next(f"partway evaluate --compare {_summary_path(asked, _problems_file(asked))} OTHER.json")


def _evaluate(options: EvaluateOptions, *, quiet: bool) -> list[dict[str, Any]]:
    """A summary for each temperature, then of chance; all that can be wrong is found before the long work."""
    from partway.evaluation.evaluate import check_problems

    file = _problems_file(options)
    floor = _floor(options, file)
    of_model = _at_each_temperature(options if floor is None else replace(options, chance=None), file)
    groups = [of_model] if floor is None else [of_model, [floor]]
    plans = [{_summary_path(one, file): _plan(one) for one in group} for group in groups]
    places = [place for group in plans for place in group.items()]
    problems = _problems(options, file, places[0][1])[: options.limit]
    check_problems(problems)
    for path, plan in places:
        if path.exists() and not options.overwrite:
            _check_place(path, {**plan.to_json(), "problems": len(problems)})
    return [
        summary
        for group, own in zip(groups, plans, strict=True)
        for summary in _drawn(group[0], problems, own, str(file), quiet=quiet)
    ]


def _drawn(
    options: EvaluateOptions,
    problems: list[Problem],
    plans: Mapping[Path, EvaluationPlan],
    file: str,
    *,
    quiet: bool,
) -> list[dict[str, Any]]:
    """The summary of each plan; one engine draws for all of them."""
    from partway.cli.progress import Bar
    from partway.measuring.journal import evaluate_into, journal_beside
    from partway.runs.rows import samples_beside

    about = {
        "model": None if options.chance else options.model,
        "engine": options.engine,
        "dtype": options.dtype,
        "tokenizer": options.asks_as if options.engine else None,
        "few_shot": options.few_shot,
        "chance": options.chance,
        "problems_file": file,
    }
    summaries: list[dict[str, Any]] = []
    with opened_engine(options, problems, logger.info) as (engine, model):
        for path, plan in plans.items():
            try:
                with Bar("evaluating", "samples", quiet=quiet) as bar:
                    summary = evaluate_into(
                        path,
                        engine,
                        problems,
                        plan,
                        model=model,
                        about=about,
                        overwrite=options.overwrite,
                        expand=not options.counts,
                        on_progress=_shown_in(bar, engine),
                    )
            except (KeyboardInterrupt, EngineError):  # what a user may want to try again
                if journal_beside(path).exists() or summaries:
                    logger.info("what is finished is kept; the same command continues from there")
                raise
            logger.info("results are in %s and %s", path, samples_beside(path)[0])
            if options.engine and _never_varies(summary):
                logger.info("all samples of each problem are equal; does the server sample at all?")
            summaries.append(summary)
    return summaries


def _at_each_temperature(options: EvaluateOptions, file: Path) -> list[EvaluateOptions]:
    """The options with one temperature each, and a name that says which; as they are, if one is asked for."""
    if options.temperatures is None:
        return [options]
    try:
        wanted = [float(one) for one in options.temperatures.split(",")]
    except ValueError:
        example = "expected numbers and commas; try 0.4,0.8,1.2"
        raise ConfigError(f"--temperatures is {options.temperatures!r}, {example}") from None
    stem = _summary_path(options, file).stem
    return [replace(options, temperature=one, name=f"{stem}-T{one:g}") for one in wanted]


def _floor(options: EvaluateOptions, file: Path) -> EvaluateOptions | None:
    """What draws chance beside a model: from the file given, or of temperatures from what the run learned."""
    from partway.measuring.chance import Chance

    if options.model is None and options.engine is None:
        if options.chance and options.temperatures:
            raise click.UsageError("chance has no temperature; leave --temperatures out or name a model")
        return None
    train, run = options.chance, _run(options)
    if train is None and options.temperatures and run is not None:
        try:
            Chance(run.problems(), options.language)
            train = str(run.problems_file("train"))
        except ProblemError as error:
            logger.info("no line for chance: %s", error)
    if train is None:
        return None
    name = f"{_summary_path(replace(options, chance=None), file).stem}-chance"
    return replace(options, chance=train, temperatures=None, name=name, dtype=None, few_shot=None)


def _shown_in(bar: Bar, engine: Engine) -> Callable[[EvaluationProgress], None]:
    """Shows how far an evaluation is; an engine that tells what it has drawn moves the bar in between."""
    latest = EvaluationProgress(0, 0, 0)

    def show(progress: EvaluationProgress) -> None:
        nonlocal latest
        latest = progress
        bar.show(progress.done, progress.total, progress.resumed)

    def show_drawn(done: int) -> None:
        bar.show(done, latest.total, latest.resumed)

    if hasattr(engine, "on_drawn"):
        # All of them are shown as done once they are judged.
        engine.on_drawn = lambda drawn: show_drawn(min(latest.done + drawn, latest.total - 1))
    return show


def _check_place(path: Path, wanted: Mapping[str, Any]) -> None:
    """Refuse a place that holds another evaluation; another model is seen once it is loaded."""
    from partway.measuring.result_files import read_summary

    there, wanted = read_summary(path), json.loads(json.dumps(wanted))
    for key in (key for key in wanted if key in there and there[key] != wanted[key]):
        raise RunError(
            f"{path}: another evaluation's results, {key} is {shown(there[key])} there and "
            f"{shown(wanted[key])} here; take another --name, or --overwrite them"
        )


def _never_varies(summary: dict[str, Any]) -> bool:
    # How many samples of a problem differ, on average; shares are floats, so 1 is not quite 1.
    distinct = summary["metrics"].get("unique", {"value": 1})["value"] * summary["samples"]
    return bool(summary["temperature"] > 0 and summary["samples"] > 1 and distinct < 1.001)


def _plan(options: EvaluateOptions) -> EvaluationPlan:
    from partway.evaluation import EvaluationPlan
    from partway.measuring.own_metrics import functions
    from partway.models.engine import SamplingSettings

    try:
        ks = tuple(int(k) for k in options.ks.split(",")) if options.ks else ()
    except ValueError:
        raise ConfigError(f"--k is {options.ks!r}, expected numbers and commas; try 1,5,10") from None
    length = length_for(options.tokenizer or options.model, options.max_completion_length)
    settings = SamplingSettings(options.temperature, options.top_p, options.top_k, length)
    own = tuple(name.strip() for name in options.metrics.split(",")) if options.metrics else ()
    plan = EvaluationPlan(
        options.samples, settings, ks, seed=options.seed, language=options.language, own_metrics=own
    )
    functions(plan)  # what is not there is told now
    # Chance has no temperature at which one sample is better than others; of several, each has its pass@1.
    is_apart = options.chance is None and options.temperatures is None
    return plan if is_apart else replace(plan, pass1_samples=0)


def _run(options: EvaluateOptions) -> Run | None:
    from partway.runs import Run

    # With a server, MODEL is its name there, also if a run is called so here.
    if options.model is None or options.engine is not None or not Run(Path(options.model)).is_started:
        return None
    return Run(Path(options.model))


def _problems_file(options: EvaluateOptions) -> Path:
    if options.problems is not None:
        return Path(options.problems)
    run = _run(options)
    if run is None:
        raise click.UsageError("which problems? Add --problems FILE")
    return run.problems_file("dev")


def _problems(options: EvaluateOptions, file: Path, plan: EvaluationPlan) -> list[Problem]:
    """The problems in `file`; a run's own are taken as it has them and judged as they were in training."""
    from partway.problems import load_problems

    run = _run(options)
    if run is not None and file == run.problems_file("dev"):
        return run.problems("dev")
    return load_problems(file, language=plan.language, columns=options.columns)


def _summary_path(options: EvaluateOptions, problems_file: Path) -> Path:
    from partway.runs import Run

    run = _run(options)
    # Without a run, results go where a run in the current directory would have them.
    directory = Path(options.out) if options.out else (run or Run(Path())).evaluations_directory
    drawn_by = "chance" if options.chance else Path(options.model or "remote").name
    owner = "" if run else f"{drawn_by}-"
    return directory / f"{options.name or owner + problems_file.stem}.json"


def show_summary(summary: Mapping[str, Any], chance: Mapping[str, Any] | None = None) -> None:
    """Every metric with its interval and, if it is known, chance; a star marks what is above it."""
    from rich.console import Console

    from partway.cli.table_style import plain_table

    drawn = f"{counted(summary['samples'], 'sample')} at temperature {summary['temperature']:g}"
    title = f"{counted(summary['problems'], 'problem')}, {drawn}"
    floor = [] if chance is None else ["chance"]
    table = plain_table("metric", "value", "95% interval", *floor, "", title=title)
    for name, metric in summary["metrics"].items():
        value, low, high = (_shown(name, metric[key]) for key in ("value", "low", "high"))
        meaning = MEANINGS.get(name, "")
        if name.startswith("true_pass@"):
            meaning = "without lucky answers"
        elif name == "pass@1" and summary["pass1_samples"]:
            meaning = f"{summary['pass1_samples']} at temperature {summary['pass1_temperature']:g}"
        beside = []
        if chance is not None:
            beside = [_shown(name, chance["metrics"][name]["value"]) if name in chance["metrics"] else ""]
            value += "*" if _best_above([summary], chance, name) is not None else " "
        table.add_row(name, value, f"{low} to {high}", *beside, meaning)
    Console().print(table)


def show_temperatures(summaries: Sequence[Mapping[str, Any]]) -> None:
    """A row for each temperature and chance, true pass@k below it; a star marks the best, if above chance."""
    from rich.console import Console

    from partway.cli.table_style import plain_table

    rows = {"chance" if one["chance"] else f"{one['temperature']:g}": one for one in summaries}
    chance = rows.get("chance")
    of_model = [one for one in summaries if one is not chance]
    names = [name for name in summaries[0]["metrics"] if name.startswith(("pass@", "maj@"))] + ["unique"]
    problems, samples = (counted(summaries[0][f"{name}s"], name) for name in ("problem", "sample"))
    title = f"{problems}, {samples} at each temperature"
    if chance is not None:
        title += "; *: the best, with its interval above chance"
    table = plain_table("T", *names, title=title)
    for label, one in rows.items():
        for kind, told in (("", label), ("true_", "  without luck")):
            own = [f"{kind}{name}" for name in names]
            if any(name in one["metrics"] for name in own):
                best = {name for name in own if _best_above(of_model, chance, name) is one}
                table.add_row(told, *(_cell(one, name, name in best) for name in own))
    Console().print(table)


def _cell(summary: Mapping[str, Any], name: str, is_best: bool) -> str:
    value = summary["metrics"].get(name)
    shown = "" if value is None else _shown(name, value["value"])
    return f"[bold]{shown}*[/]" if is_best else f"{shown} "


def _best_above(
    summaries: Sequence[Mapping[str, Any]], chance: Mapping[str, Any] | None, name: str
) -> Mapping[str, Any] | None:
    """The summary with the best of a metric, if that is above chance; None where nobody knows.

    To be distinct is no success: random programs are.
    """
    if name.startswith("unique"):
        return None
    from partway.measuring.chance import best_above
    from passatk import Estimate

    metrics = [one["metrics"].get(name) for one in (*summaries, chance or {"metrics": {}})]
    *found, floor = (
        None if one is None else Estimate(one["value"], one["low"], one["high"]) for one in metrics
    )
    best = best_above({number: one for number, one in enumerate(found) if one is not None}, floor)
    return None if best is None else summaries[best]


def show_comparison(comparison: Comparison, first: str, second: str) -> None:
    """Both sides and the difference; a star marks an interval without 0."""
    from rich.console import Console

    from partway.cli.table_style import plain_table

    title = f"A: {first}\nB: {second}\n{counted(comparison.problems, 'problem')} in common"
    if comparison.left_out:
        title += f", {comparison.left_out:,} left out that only one has"
    click.echo(title)  # above the table and not in it: names of files are longer than its columns
    table = plain_table("metric", "A", "B", "B - A", "95% interval", "")
    for name, difference in comparison.difference.items():
        sides = (_shown(name, side[name].value) for side in (comparison.first, comparison.second))
        interval = f"{_shown(name, difference.low, '+')} to {_shown(name, difference.high, '+')}"
        star = "*" if difference.low > 0 or difference.high < 0 else ""
        if difference.low == difference.high:  # no two problems differ: how far off it may be is not known
            interval, star = "-", ""
        table.add_row(name, *sides, _shown(name, difference.value, "+"), interval, star)
    Console().print(table)


def _shown(metric: str, value: float, sign: str = "") -> str:
    """A share as a percentage; the value of your own metric as it is."""
    from partway.evaluation.samples import is_share_of_problems

    is_share = is_share_of_problems(metric) or metric in MEANINGS
    return f"{100 * value:{sign}.1f}%" if is_share else f"{value:{sign}.4g}"
