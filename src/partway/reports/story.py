"""The report in words: what was compared, what came out, and what the names mean, each at its first use."""

from __future__ import annotations

from collections.abc import Sequence

from partway.evaluation import Estimate, differences, estimates
from partway.objectives import label_of
from partway.reports.study import Setting, Study

STRATEGIES = {
    "none": "learns from the given solution of each problem alone",
    "fcs": "also samples solutions while it trains and learns from its own fully-correct solutions (FCS): "
    "those that give the right answer",
    "fcs+pcs": "also samples solutions while it trains and learns from its own fully-correct ones (FCS), "
    "those that give the right answer, and partially-correct ones (PCS): beginnings that reach a state, the "
    "values of all variables, from which the answer is known to be reachable",
}
IN_SHORT = {  # at the first use of a setting's name
    "none": "from the given solutions alone",
    "fcs": "also from its own correct samples",
    "fcs+pcs": "also from its own correct and partially-correct samples",
}
OBJECTIVES = {
    "mle": "MLE is maximum likelihood estimation",
    "mle_aug": "MLE-Aug adds up the losses of all kept solutions of a problem",
    "mml": "MML, maximum marginal likelihood, asks for any of the kept solutions",
    "beta_mml": "beta-MML lies between asking for any of the kept solutions and asking for all",
}


def headline(study: Study) -> list[str]:
    """What was compared and what came out: differences to the baseline first, each with its interval."""
    if not study.ks or not study.evaluated:
        size = f"{counted(len(study.settings), 'setting')}, {counted(len(study.runs), 'run')}"
        return [f"{size}, no evaluation yet."]
    k = study.ks[-1]
    base = baseline_of(study)
    sizes = {result.problems for setting in study.evaluated for result in setting.results(study.split)}
    where = f"{max(sizes):,} {study.split} problems"
    if base is None:
        return [_alone(study, setting, k, where) for setting in study.evaluated]
    others = [setting for setting in study.evaluated if setting is not base]
    told = [_difference(study, setting, base, k, where if setting is others[0] else "") for setting in others]
    runs = [f"{setting.label} ({counted(len(setting.runs), 'run')})" for setting in study.evaluated]
    return [*told, f"Compared were {_and(runs)}, from the checkpoint each run chose."]


def baseline_of(study: Study) -> Setting | None:
    """What the others are compared with, learning from references alone; None if there is no such pair."""
    plain = [setting for setting in study.evaluated if setting.strategy == "none"]
    return plain[0] if plain and len(study.evaluated) > 1 else None


def gain(study: Study, setting: Setting, base: Setting, metric: str) -> Estimate | None:
    """What a setting has over the baseline, problem by problem; None if they share no seeds and problems."""
    own, other = ({run.seed: run.results.get(study.split) for run in s.runs} for s in (setting, base))
    pairs = [(own[seed], other[seed]) for seed in sorted(own) if seed in other]
    paired = [(a, b) for a, b in pairs if a and b and a.task_ids and a.task_ids == b.task_ids]
    if not paired or len(paired) < max(len(own), len(other)):
        return None
    gains = differences([a.scores for a, _ in paired], [b.scores for _, b in paired])
    return estimates(gains, problems=[a.task_ids for a, _ in paired]).get(metric)


def _difference(study: Study, setting: Setting, base: Setting, k: int, where: str) -> str:
    metric = f"pass@{k}"
    own, other = (study.estimates[s.label].get(metric) for s in (setting, base))
    if own is None or other is None:
        return f"{setting.label} was not measured at {metric}."
    of = f" of {where}" if where else ""
    known = _introduced(base) if where else base.label
    begin = (
        f"{_introduced(setting)} solves {100 * own.value:.1f}%{of} with one of {k:,} samples; "
        f"{known} solves {100 * other.value:.1f}%"
    )
    found = gain(study, setting, base, metric)
    if found is None:
        return f"{begin}; the two were not measured on the same problems and seeds, so there is no interval."
    if found.low == found.high == 0:  # resampled differences that are all 0 know no spread
        return f"{begin}. They solve every problem equally often: these runs do not tell the two apart."
    more = "more" if found.value >= 0 else "fewer"
    interval = f"95% interval {100 * found.low:+.1f} to {100 * found.high:+.1f}"
    return f"{begin}: {abs(100 * found.value):.1f} points {more} ({interval}). {judgement(found)}"


def _introduced(setting: Setting) -> str:
    """A setting's name at its first use."""
    means = IN_SHORT.get(setting.strategy)
    return setting.label if means is None else f"{setting.label}, which learns {means},"


def judgement(found: Estimate) -> str:
    """Whether a difference is one."""
    if found.low > 0:
        return "The whole interval is above 0."
    if found.high < 0:
        return "The whole interval is below 0."
    return "The interval includes 0: these runs do not tell the two apart."


def _alone(study: Study, setting: Setting, k: int, where: str) -> str:
    found = study.estimates[setting.label].get(f"pass@{k}")
    if found is None:
        return f"{setting.label} was not measured at pass@{k}."
    return (
        f"{_introduced(setting)} solves {100 * found.value:.1f}% of {where} with one of {k:,} samples "
        f"(95% interval {100 * found.low:.1f} to {100 * found.high:.1f})."
    )


def terms(study: Study) -> list[tuple[str, str]]:
    """What the names of the settings and of the numbers mean."""
    found: list[tuple[str, str]] = []
    explained: set[str] = set()
    for setting in study.settings:
        words = [STRATEGIES.get(setting.strategy, setting.strategy)]
        if setting.objective not in explained:
            words.append(OBJECTIVES.get(setting.objective, f"{label_of(setting.objective)} is its objective"))
            explained.add(setting.objective)
        found.append((setting.label, ". ".join(_sentence(word) for word in words) + "."))
    if study.ks:
        found.append(
            (
                "pass@k",
                "The share of problems of which at least one of k samples is right. "
                "pass@1 takes one sample at a low temperature.",
            )
        )
    return found


def _sentence(words: str) -> str:
    return words if words.startswith("beta") else f"{words[0].upper()}{words[1:]}"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(2, "run")
    '2 runs'
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
