"""Groups runs into settings: runs of one setting differ only in seed and problems. Names are the paper's."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

from partway.buffer.rules import SELF_SAMPLING
from partway.errors import visible
from partway.evaluation import Estimate, estimates
from partway.evaluation.results import metric_estimates
from partway.measuring.paired import gain_estimates
from partway.objectives import label_of, objective_names
from partway.runs import Row
from passatk import ENOUGH_RUNS
from runreports.averages import Band, Shares, mean_band, pooled_shares
from runreports.summaries import Effort, Result, RunSummary

STRATEGIES = {strategy: label for strategy, (label, _) in SELF_SAMPLING.items()}

# What differs between runs of one setting.
DATA = ("train_file", "eval_file")
NO_SETTING = {
    *("output_dir", "run_name", "seed", "data_seed", "report_to", "disable_tqdm", "log_level", "project"),
    *("logging_steps", "save_steps", "save_strategy", "save_total_limit", "use_cpu", *DATA),
}

MOST_NAMED = 4  # runs of a setting below a figure


@dataclass(frozen=True)
class Setting:
    """Runs with the same settings, one for each seed."""

    label: str
    runs: tuple[RunSummary, ...]

    @property
    def strategy(self) -> str:
        """What is kept of the model's own samples: none, fcs or fcs+pcs."""
        return str(self.runs[0].config.get("self_sampling", "fcs+pcs"))

    @property
    def objective(self) -> str:
        """The loss; without self-samples they are all MLE."""
        return "mle" if self.strategy == "none" else str(self.runs[0].config.get("objective", "mle_aug"))

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run in self.runs)

    def band(self, key: str) -> Band:
        """The mean over runs of a number that is logged while training."""
        return mean_band([run.curves.get(key, {}) for run in self.runs])

    @cached_property
    def shares(self) -> Shares:
        """What became of the self-samples of all runs, over training."""
        return pooled_shares([run.curves for run in self.runs])

    def results(self, split: str) -> list[Result]:
        """The evaluations on `split` that there are."""
        return [run.results[split] for run in self.runs if split in run.results]

    @cached_property
    def work(self) -> dict[str, Effort]:
        """The mean over runs of what each part of training took."""
        parts = [run.work for run in self.runs if run.work]
        return {span: _mean_work([part[span] for part in parts]) for span in (parts[0] if parts else ())}

    @cached_property
    def kept_per_problem(self) -> tuple[Estimate, Estimate] | None:
        """Fully- and partially-correct solutions per problem, over runs and problems."""
        kept = [run.kept for run in self.runs if run.kept and run.kept.kinds]
        if not kept:
            return None
        kinds = ("fully_correct", "partially_correct")
        found = estimates(
            [{kind: one.of_kind(kind) for kind in kinds} for one in kept],
            problems=[tuple(one.kinds) for one in kept],
        )
        return found[kinds[0]], found[kinds[1]]


@dataclass(frozen=True)
class Study:
    """Settings to compare, the split they are compared on, and remarks on what is missing."""

    settings: tuple[Setting, ...]
    split: str
    names: dict[Path, str]
    notes: tuple[str, ...]

    @property
    def runs(self) -> tuple[RunSummary, ...]:
        """Every run, by setting."""
        return tuple(run for setting in self.settings for run in setting.runs)

    @property
    def evaluated(self) -> tuple[Setting, ...]:
        """Settings with a result on the split."""
        return tuple(s for s in self.settings if s.results(self.split))

    @property
    def sampling(self) -> tuple[Setting, ...]:
        """Settings that keep some of the model's own samples."""
        return tuple(setting for setting in self.settings if setting.strategy != "none")

    @property
    def ks(self) -> tuple[int, ...]:
        """Every k for which some setting has a pass@k."""
        return tuple(sorted({k for s in self.settings for r in s.results(self.split) for k in r.ks}))

    @property
    def chance(self) -> Result | None:
        """What programs without a model solve, where a run has it."""
        return next((run.chance for run in self.runs if run.chance is not None), None)

    @cached_property
    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """Every metric on the split by setting; intervals are over problems and, if several, over runs."""
        return {s.label: _estimates(s.results(self.split)) for s in self.settings}

    @property
    def baseline(self) -> Setting | None:
        """What the others are compared with, learning from references alone; None where there is no pair."""
        plain = [setting for setting in self.evaluated if setting.strategy == "none"]
        return plain[0] if plain and len(self.evaluated) > 1 else None

    @cached_property
    def gains(self) -> dict[str, dict[str, Estimate]]:
        """What each other setting has over the baseline in every metric, problem by problem.

        A setting that does not share its seeds and problems with the baseline has none.
        """
        base = self.baseline
        others = [setting for setting in self.evaluated if setting is not base]
        return {} if base is None else {s.label: _gains(s, base, self.split) for s in others}

    def origin(self, setting: Setting, runs: Sequence[RunSummary], steps: str) -> str:
        """Which runs, steps and seeds a figure shows for a setting."""
        names = [_shortened(self.names[run.directory]) for run in runs]
        if len(names) > MOST_NAMED:
            names = [*names[:2], f"… {len(names) - 3} more …", names[-1]]
        seeds = [run.seed for run in runs]
        return f"{setting.label}: {', '.join(names)} · {steps} · seed{'s' * (len(seeds) > 1)} {listed(seeds)}"

    def origin_at(self, setting: Setting, steps: Sequence[tuple[RunSummary, int | None]]) -> str:
        """The same for numbers of one step of each run, in the order of the runs where they differ."""
        known = [step for _, step in steps if step is not None]
        if len(set(known)) < 2:
            told = f"step {listed(known)}"
        elif len(known) > MOST_NAMED:
            told = f"steps {min(known):,} to {max(known):,}"
        else:
            told = f"steps {', '.join(f'{step:,}' for step in known)}"
        return self.origin(setting, [run for run, _ in steps], told)

    def origin_over(self, setting: Setting, prefixes: str | tuple[str, ...]) -> str:
        """The same for logged numbers whose names begin so."""
        curves = [[c for key, c in run.curves.items() if key.startswith(prefixes)] for run in setting.runs]
        runs = [run for run, own in zip(setting.runs, curves, strict=True) if own]
        steps = [step for own in curves for curve in own for step in curve]
        first, last = min(steps), max(steps)
        told = f"step {last:,}" if first == last else f"steps {first:,} to {last:,}"
        return self.origin(setting, runs, told)


def _estimates(results: Sequence[Result]) -> dict[str, Estimate]:
    """From the scores of every problem; of evaluations without samples, from what they recorded."""
    if all(result.scores for result in results):
        return metric_estimates([r.scores for r in results], [r.task_ids for r in results])
    if len(results) < ENOUGH_RUNS:  # two say nothing about others: from the lowest to the highest end
        names = [name for name in results[0].metrics if all(name in one.metrics for one in results)]
        each = {name: [result.metrics[name] for result in results] for name in names}
        return {
            name: Estimate(fmean(e.value for e in own), min(e.low for e in own), max(e.high for e in own))
            for name, own in each.items()
        }
    return estimates([{name: [e.value] for name, e in result.metrics.items()} for result in results])


def _gains(setting: Setting, base: Setting, split: str) -> dict[str, Estimate]:
    own, other = ({run.seed: run.results.get(split) for run in s.runs} for s in (setting, base))
    pairs = [(own[seed], other[seed]) for seed in sorted(own) if seed in other]
    paired = [(a, b) for a, b in pairs if a and b and a.task_ids and a.task_ids == b.task_ids]
    if not paired or len(paired) < max(len(own), len(other)):
        return {}
    ours, theirs = [a.scores for a, _ in paired], [b.scores for _, b in paired]
    return gain_estimates(ours, theirs, [a.task_ids for a, _ in paired])


def study_of(runs: Iterable[RunSummary], labels: Mapping[Path, str] | None = None) -> Study:
    """Group runs into settings in the paper's order, and choose what they can be compared on.

    With `labels`, a name for each run directory, runs of one name are a setting, in the order of the names.
    """
    runs = sorted(
        _completed(list(runs)), key=lambda run: (str(run.directory.parent), run.seed, run.directory.name)
    )
    settings = _labelled(_grouped(runs)) if labels is None else _named(runs, labels)
    names = _names([run.directory for run in runs])
    evaluated = [setting for setting in settings if any(run.results for run in setting.runs)]
    untested = [setting.label for setting in evaluated if not setting.results("test")]
    split = "dev" if untested else "test"  # all on the same, or there is nothing to compare
    notes = [f"{names[run.directory]}: {remark}" for run in runs for remark in _remarks(run, split)]
    if 0 < len(untested) < len(evaluated):
        notes.append(f"compared on dev, because not evaluated on test: {'; '.join(untested)}")
    sizes = {setting.label: listed(r.problems for r in setting.results(split)) for setting in evaluated}
    if len(set(sizes.values())) > 1:
        told = "; ".join(f"{label} on {size}" for label, size in sizes.items())
        notes.append(f"evaluated on different numbers of problems: {told}")
    return Study(settings, split, names, tuple(notes))


def _completed(runs: Sequence[RunSummary]) -> list[RunSummary]:
    """The runs with defaults for settings that only others record: what is not said has its default."""
    # Versions differ in which settings they know; a new one must not tear runs of one setting apart.
    keys = {key for run in runs for key in run.config} - NO_SETTING
    if all(keys <= run.config.keys() for run in runs):
        return list(runs)
    from partway.training import SelfSamplingConfig  # takes seconds, so only when needed

    defaults = {f.name: f.default for f in fields(SelfSamplingConfig) if f.name in keys}
    return [replace(run, config={**defaults, **run.config}) for run in runs]


def _remarks(run: RunSummary, split: str) -> list[str]:
    unfinished = [] if run.is_finished else [f"not finished ({run.state})"]
    without = [f"no evaluation on {split}"] if run.results and split not in run.results else []
    return [*unfinished, *run.missing, *without]


def _grouped(runs: Sequence[RunSummary]) -> list[list[RunSummary]]:
    """Runs by setting. The same seed twice means other problems, not another seed: those are kept apart."""
    groups = []
    for group in _by_settings(runs, NO_SETTING):
        is_one = len({run.seed for run in group}) == len(group)
        groups += [group] if is_one else _by_settings(group, NO_SETTING - {*DATA})
    return groups


def _by_settings(runs: Sequence[RunSummary], ignored: set[str]) -> list[list[RunSummary]]:
    groups: defaultdict[str, list[RunSummary]] = defaultdict(list)
    for run in runs:
        settings = {key: value for key, value in run.config.items() if key not in ignored}
        groups[json.dumps(settings, sort_keys=True, default=str)].append(run)
    return list(groups.values())


def _named(runs: Sequence[RunSummary], labels: Mapping[Path, str]) -> tuple[Setting, ...]:
    groups: dict[str, list[RunSummary]] = {label: [] for label in labels.values()}
    for run in runs:
        groups[labels[run.directory]].append(run)
    return tuple(Setting(label, tuple(group)) for label, group in groups.items())


def _labelled(groups: Sequence[list[RunSummary]]) -> tuple[Setting, ...]:
    settings = [Setting("", tuple(group)) for group in groups]
    settings.sort(
        key=lambda s: (_place([*STRATEGIES], s.strategy), _place([*objective_names()], s.objective))
    )
    labels = [_named_as_arms(setting) for setting in settings]
    configs: defaultdict[str, list[Row]] = defaultdict(list)
    for label, setting in zip(labels, settings, strict=True):
        configs[label].append(setting.runs[0].config)
    labels = [
        label + _difference(setting.runs[0].config, configs[label])
        for label, setting in zip(labels, settings, strict=True)
    ]
    twins = Counter(labels)
    return tuple(
        replace(setting, label=label if twins[label] == 1 else f"{label} #{labels[:index].count(label) + 1}")
        for index, (label, setting) in enumerate(zip(labels, settings, strict=True))
    )


def _named_as_arms(setting: Setting) -> str:
    """What `partway compare` calls it: MLE, FCS or FCS+PCS, the objective after it if it is not MLE-Aug."""
    if setting.strategy == "none":
        return "MLE"
    other = "" if setting.objective == "mle_aug" else f", {label_of(setting.objective)}"
    return f"{setting.strategy.upper()}{other}"


def _place(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _difference(own: Row, twins: Sequence[Row]) -> str:
    """What tells a setting from others of the same name, in brackets: other settings, else other problems."""
    keys = sorted({key for config in twins for key in config} - NO_SETTING)
    for candidates in (keys, DATA):  # problems differ between seeds too, so they are the last resort
        differ = [key for key in candidates if any(config.get(key) != own.get(key) for config in twins)]
        if differ:
            told = ", ".join(f"{key} {own.get(key)}" for key in differ if not _is_common(key, own, twins))
            return f" ({_shortened(visible(told), 60)})" if told else ""
    return ""


def _is_common(key: str, own: Row, twins: Sequence[Row]) -> bool:
    """Whether most twins have this value, too; of ablations only what each changes is told."""
    alike = [config for config in twins if config.get(key) == own.get(key)]
    return 2 * len(alike) > len(twins)


def _names(directories: Sequence[Path]) -> dict[Path, str]:
    """For each directory as many of its last parts as tell it from the others."""
    paths = {directory: directory.resolve().parts for directory in directories}
    for length in range(1, max((len(parts) for parts in paths.values()), default=1) + 1):
        names = {directory: visible("/".join(parts[-length:])) for directory, parts in paths.items()}
        if len(set(names.values())) == len(set(paths.values())):
            break
    return names


def _mean_work(parts: Sequence[Effort]) -> Effort:
    def mean(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return round(sum(known) / len(known)) if known else None

    seconds = sum(part.seconds for part in parts) / len(parts)
    return Effort(seconds, mean([part.tokens for part in parts]), mean([part.samples for part in parts]))


def listed(values: Iterable[int]) -> str:
    """The distinct values in order; many are given as a range.

    >>> listed([3, 1, 3]), listed(range(20))
    ('1, 3', '0 to 19')
    """
    distinct = sorted(set(values))
    if len(distinct) > 6:
        return f"{distinct[0]} to {distinct[-1]}"
    return ", ".join(f"{value:,}" for value in distinct) or "unknown"


def _shortened(text: str, length: int = 40) -> str:
    # The middle goes: names differ mostly at their ends.
    return text if len(text) <= length else f"{text[: length // 2 - 1]}…{text[-length // 2 :]}"
