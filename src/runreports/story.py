"""The report in words: what was compared, what came out, and what the names mean, each at its first use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from partway.buffer.rules import SELF_SAMPLING
from partway.cli.options import counted
from partway.evaluation import Estimate
from partway.objectives import label_of, named_objective
from runreports.study import Setting, Study

KINDS = {
    "FCS": "A fully-correct solution: it gives the right answer. References are among them",
    "PCS": "A partially-correct solution: the beginning of one, up to a state, the values of all variables, "
    "from which the answer is known to be reachable",
}

MOST_TOLD = 4  # settings, each in a sentence of its own


def headline(study: Study) -> list[str]:
    """What was compared and what came out: differences to the baseline first, each with its interval."""
    if not study.ks or not study.evaluated:
        size = f"{counted(len(study.settings), 'setting')}, {counted(len(study.runs), 'run')}"
        return [f"{size}, no evaluation yet."]
    k = max((k for k in study.ks if k <= 10), default=study.ks[0])  # beyond, random programs do as well
    base = study.baseline
    sizes = {result.problems for setting in study.evaluated for result in setting.results(study.split)}
    where = counted(max(sizes), f"{study.split} problem")
    if base is None:
        return [_alone(study, setting, k, where) for setting in study.evaluated]
    others = [setting for setting in study.evaluated if setting is not base]
    if len(others) > MOST_TOLD:
        return _many(study, others, base, k, where)
    told = [_difference(study, setting, base, k, where if setting is others[0] else "") for setting in others]
    runs = [f"{setting.label} ({counted(len(setting.runs), 'run')})" for setting in study.evaluated]
    return [*told, f"Compared were {_and(runs)}, from the checkpoint each run chose."]


def _difference(study: Study, setting: Setting, base: Setting, k: int, where: str) -> str:
    metric = f"pass@{k}"
    own, other = (study.estimates[s.label].get(metric) for s in (setting, base))
    if own is None or other is None:
        return f"{setting.label} was not measured at {metric}."
    of = f" of {where}" if where else ""
    known = _introduced(base) if where else base.label
    begin = (
        f"{_introduced(setting)} solves {100 * own.value:.1f}%{of} with one of {counted(k, 'sample')}; "
        f"{known} solves {100 * other.value:.1f}%"
    )
    found = study.gains[setting.label].get(metric)
    if found is None:
        return f"{begin}; the two were not measured on the same problems and seeds, so there is no interval."
    if found.low == -found.high and not found.value:  # no problem differs: the interval is Wilson's
        return f"{begin}. They solve every problem equally often: these runs do not show which is better."
    more = "more" if found.value >= 0 else "fewer"
    interval = f"95% interval {100 * found.low:+.1f} to {100 * found.high:+.1f}"
    return f"{begin}: {abs(100 * found.value):.1f} points {more} ({interval}). {judgement(found)}"


def _many(study: Study, others: Sequence[Setting], base: Setting, k: int, where: str) -> list[str]:
    """The best of many settings, and which of them can be told from the baseline; the table has the rest."""
    metric = f"pass@{k}"
    gains = {s.label: found for s in others if (found := study.gains[s.label].get(metric)) is not None}
    if not gains:
        return [_alone(study, setting, k, where) for setting in (base, *others)]
    measured = [s for s in others if metric in study.estimates[s.label]]
    best = max(measured, key=lambda s: study.estimates[s.label][metric].value)
    above = [label for label, found in gains.items() if found.low > 0]
    below = [label for label, found in gains.items() if found.high < 0]
    return [
        f"The best of {counted(len(others), 'setting')}: {_difference(study, best, base, k, where)}",
        f"Of the intervals of {len(gains)} differences to {base.label} at {metric}, {_among('above', above)} "
        f"and {_among('below', below)}; the rest include 0. One in twenty may miss by chance, and the best "
        "of many looks better than it is. All are in the first table.",
    ]


def _among(where: str, labels: Sequence[str]) -> str:
    if len(labels) > MOST_TOLD:
        return f"{len(labels)} lie {where} 0"
    return f"{_and(labels)} lie{'s' * (len(labels) == 1)} {where} 0" if labels else f"none lies {where} 0"


def _introduced(setting: Setting) -> str:
    """A setting's name at its first use."""
    is_known = setting.strategy in SELF_SAMPLING
    return f"{setting.label}, which {_learns(setting.strategy)}," if is_known else setting.label


def judgement(found: Estimate) -> str:
    """Whether a difference is one."""
    if found.low > 0:
        return "The whole interval is above 0."
    if found.high < 0:
        return "The whole interval is below 0."
    return "The interval includes 0: these runs do not show which of the two is better."


def _alone(study: Study, setting: Setting, k: int, where: str) -> str:
    found = study.estimates[setting.label].get(f"pass@{k}")
    if found is None:
        return f"{setting.label} was not measured at pass@{k}."
    return (
        f"{_introduced(setting)} solves {100 * found.value:.1f}% of {where} "
        f"with one of {counted(k, 'sample')} (95% interval {100 * found.low:.1f} to {100 * found.high:.1f})."
    )


def terms(study: Study) -> list[tuple[str, str]]:
    """What the names of the settings and of the numbers mean."""
    labels: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for setting in study.settings:
        labels[setting.strategy, setting.objective].append(setting.label)
    found: list[tuple[str, str]] = []
    explained: set[str] = set()
    for (strategy, objective), alike in labels.items():
        words = [_learns(strategy)]
        if objective not in explained:
            known = named_objective(objective)
            words.append((known and known.meaning) or f"{label_of(objective)} is its objective")
            explained.add(objective)
        named = alike if len(alike) <= MOST_TOLD else [alike[0], f"{len(alike) - 1} others"]
        found.append((_and(named), ". ".join(_sentence(word) for word in words) + "."))
    strategies = {setting.strategy.upper() for setting in study.settings}
    found += [(kind, f"{means}.") for kind, means in KINDS.items() if any(kind in s for s in strategies)]
    if study.ks:
        means = "The share of problems of which at least one of k samples is right"
        found.append(("pass@k", f"{means}. pass@1 takes one sample at a low temperature."))
    return found


def _learns(strategy: str) -> str:
    return f"learns from {SELF_SAMPLING[strategy][1]}" if strategy in SELF_SAMPLING else strategy


def _sentence(words: str) -> str:
    return words if words.startswith("beta") else f"{words[0].upper()}{words[1:]}"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
