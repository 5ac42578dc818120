"""Arms without training: another arm's model mixed with the first one or drawn otherwise, or no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from partway.arms.experiment import SHARES
from partway.arms.selecting import Contender
from partway.arms.trials import Problems, Trial, loaded, sampling
from partway.measuring.chance import Chance
from partway.models.engine import Engine, SamplingSettings
from partway.runs import Run
from partway.sample import Request, Sample

if TYPE_CHECKING:
    from partway.models.loading import LanguageModel


def candidates(trial: Trial, run: Run | None, problems: Problems) -> tuple[list[Contender], Contender]:
    """What may be chosen, and what one has without choosing; each is measured on dev first."""
    model = trial.experiment.model if run is None else str(run.final)
    if trial.arm.method == "untrained":
        found = _candidate(trial, problems, "first weights", trial.engine(model))
        return [found], found
    if trial.arm.method == "chance":
        chance = partial(Chance, problems["train"], trial.experiment.language)
        found = _candidate(trial, problems, "random programs", chance, pass1=False)
        return [found], found
    if trial.arm.method == "ensemble":
        parent = trial.parent
        assert parent is not None, "an ensemble is of another arm"
        models = [str(one.run.final) for one in (parent, parent.twin)]
        found = _candidate(
            trial, problems, "two models", lambda: Together([trial.engine(m)() for m in models])
        )
        return [found], found
    if trial.arm.method == "mix":
        mixes = {
            share: _candidate(
                trial,
                problems,
                f"mix {share:g}",
                partial(sampling, partial(_mixed, trial.experiment.model, model, share)),
            )
            for share in SHARES
        }
        # Wortsman et al. recommend one half where nothing can be chosen on.
        return list(mixes.values()), mixes[0.5]
    # pass@1 is then the mean over all samples: a draw of its own at T=0.2 would be the same for all.
    drawn = {
        temperature: _candidate(
            trial, problems, f"T={temperature:g}", trial.engine(model), temperature, pass1=False
        )
        for temperature in trial.experiment.temperatures
    }
    return list(drawn.values()), drawn[min(drawn, key=lambda one: abs(one - 0.8))]  # the paper's


def _candidate(
    trial: Trial,
    problems: Problems,
    name: str,
    load: Callable[[], Engine],
    temperature: float = 0.8,
    *,
    pass1: bool = True,
) -> Contender:
    file_name = name.replace(" ", "-").replace("=", "-")
    plans = {
        "dev": trial.plan(trial.experiment.dev_samples, temperature, pass1=pass1),
        "test": trial.plan(trial.experiment.test_samples, temperature, pass1=pass1),
    }
    measures = {
        split: partial(
            trial.measured, load, trial.folder / f"{split}-{file_name}.json", problems[split], plan
        )
        for split, plan in plans.items()
    }
    # Dev is measured now, test only if the candidate is chosen: `measure` is called by then.
    dev = {metric: fmean(scores) for metric, scores in measures["dev"]().items()}
    return Contender(name, dev, measures["test"])


@dataclass(frozen=True)
class Together(Engine):
    """Several engines, each of which draws an equal share of every request's samples."""

    engines: Sequence[Engine]

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """The first engines draw one more where samples cannot be divided."""
        drawn: list[list[Sample]] = [[] for _ in requests]
        for place, engine in enumerate(self.engines):
            counts = [(one.count + len(self.engines) - 1 - place) // len(self.engines) for one in requests]
            asked = [index for index, count in enumerate(counts) if count]
            own = [replace(requests[index], count=counts[index]) for index in asked]
            # Of equal models one seed would draw the same samples twice.
            for index, samples in zip(asked, engine.complete(own, settings, seed + place), strict=True):
                drawn[index] += samples
        return drawn


def _mixed(first: str, tuned: str, share: float) -> LanguageModel:
    from partway.arms.mixing import mixed

    return mixed(loaded(first), loaded(tuned), share)
