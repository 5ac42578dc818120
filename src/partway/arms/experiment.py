"""What a comparison consists of: arms, seeds, problems and the budget that every arm gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from partway import registry
from partway.arms.arms import Arm, load_arms, refuse_shared
from partway.cli.config_files import file_of, read_settings
from partway.errors import ConfigError, ProblemError, suggestion
from partway.language import Language
from partway.language.named import language_of
from partway.problem import Problem
from partway.problems import load_problems
from partway.settings import checked

if TYPE_CHECKING:
    from partway.training import SelfSamplingConfig

MODEL = "tiny-storyproblems"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the fine-tuned weights in a mix
USUAL_KS = (5, 10, 20, 50, 100)
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
RULES = {
    "mix": "WiSE-FT: in place of checkpoints, mixes of the first weights with "
    f"{', '.join(map(str, SHARES))} of the arm's selected model; the last step's place has 0.5",
    "temperatures": "temperature: in place of checkpoints, T={temperatures} with the arm's selected model, "
    "also for pass@1, the mean over all samples; the last step's place has the one nearest to 0.8",
    "rounds": "rounds: steps and samples are divided among them; checkpoints are those of the last round",
    "ensemble": "two models: half of the samples from each; the second is trained as the first, on the same "
    "problems with another seed",
    "chance": "chance: references that the arms may see, with numbers of the question in random order; no "
    "temperature, so pass@1 is the mean over all samples",
}
# What docs/few_references.md recommends where few problems have a solution.
FEW_REFERENCES = {"preset": "recommended", "spurious": "drop", "solved_share": 0.5}
COUNTS = ("train", "dev", "test", "steps", "eval_steps", "dev_samples", "test_samples", "trial_steps")
OWN_LENGTH = 256  # tokens of a solution to a problem that is not built in


@dataclass(frozen=True)
class Experiment:
    """How much of everything. In every arm that samples, a step draws as many: `batch_size` problems',
    `num_generations` of each. `settings` are keys of `partway train` for all arms.
    """

    arms: tuple[Arm, ...]
    seeds: tuple[int, ...] = (0,)
    train: int = 200
    dev: int = 100
    test: int = 200
    steps: int = 200
    eval_steps: int = 100
    dev_samples: int = 20
    test_samples: int = 100
    references: int | None = None  # training problems that keep theirs; by default all
    batch_size: int = 32
    num_generations: int = 1
    learning_rate: float = 5e-4
    learning_rates: list[float] | dict[str, float] | None = None  # tried for every arm, or each arm's own
    trial_steps: int = 40  # of each learning rate that is tried, with the first seed
    selects: str = "pass@1"  # the dev metric by which checkpoints and learning rates are chosen
    same_problems: bool = False  # all seeds have those of the first
    max_completion_length: int = 120
    model: str = MODEL
    temperatures: list[float] = field(default_factory=lambda: [*TEMPERATURES])  # of which dev chooses one
    dtype: Literal["float32", "bfloat16", "float16"] | None = None  # of the weights that draw, but for mixes
    data: Path | None = None  # a folder with other problems than the built-in ones
    difficulty: str = "easy"  # of the built-in ones
    measures_all: bool = False  # also the last step and the best checkpoint for each k
    settings: Mapping[str, Any] = field(default_factory=dict)
    own_metrics: list[str] | None = None  # functions, as package.module:name

    def __post_init__(self) -> None:
        for name in COUNTS:
            if (value := getattr(self, name)) < 1:
                raise ConfigError(f"{name} is {value}, expected at least 1")
        refuse_shared(self.settings, "settings of all arms")
        on_dev = [f"pass@{k}" for k in (1, *USUAL_KS) if k <= self.dev_samples]
        if self.selects not in on_dev:
            near = (
                suggestion(self.selects, on_dev) or f"; with {self.dev_samples} samples {', '.join(on_dev)}"
            )
            raise ConfigError(f"selects is {self.selects!r}, which evaluations on dev do not give{near}")
        self._check_rates()
        if not self.arms or not self.seeds:
            raise ConfigError("a comparison needs at least one arm and one seed")
        if self.train < self.batch_size:  # no problem occurs twice in a step
            raise ConfigError(
                f"train is {self.train} but batch_size is {self.batch_size}: a step would draw fewer samples "
                "than the budget says; take more training problems or smaller batches"
            )
        if self.references is not None and not 0 <= self.references <= self.train:
            raise ConfigError(f"references is {self.references}, expected 0 to {self.train}, all of train")
        for arm in self.arms:
            if self.samples_per_step % self.samples_per_problem(arm):
                raise ConfigError(
                    f"arm {arm.name}: samples_per_problem is {arm.samples_per_problem}, which does not "
                    f"divide the {self.samples_per_step} samples that every arm draws in a step"
                )
            if arm.rounds > self.steps:
                raise ConfigError(f"arm {arm.name} divides {self.steps} steps among {arm.rounds} rounds")
            if arm.sees_all and self.references in (None, self.train):
                raise ConfigError(
                    f"arm {arm.name} learns the references that the others do not see, but all arms see all; "
                    "set references to how many training problems keep theirs"
                )

    def _check_rates(self) -> None:
        rates = self.learning_rates or []
        if rates and "learning_rate" in self.settings:
            raise ConfigError("settings of all arms: learning_rate takes the place of learning_rates")
        for name in rates if isinstance(rates, dict) else ():
            if name not in (names := [arm.name for arm in self.arms]):
                raise ConfigError(
                    f"learning_rates names '{name}', which is not an arm{suggestion(name, names)}"
                )
        for rate in rates.values() if isinstance(rates, dict) else rates:
            if not isinstance(rate, float) or rate <= 0:
                raise ConfigError(f"learning_rates has {rate!r}, expected numbers above 0, such as 5.0e-4")

    def tried(self, arm: Arm) -> list[float]:
        """The learning rates of which dev chooses one for an arm; none, if it has one of its own."""
        rates = self.learning_rates
        is_open = arm.trains and "learning_rate" not in arm.settings
        return rates if is_open and isinstance(rates, list) else []

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)

    @property
    def ks(self) -> tuple[int, ...]:
        """Every k above 1 of a pass@k."""
        return tuple(k for k in USUAL_KS if k <= self.test_samples)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The columns of a table."""
        return ("pass@1", *(f"pass@{k}" for k in self.ks))

    @property
    def samples_per_step(self) -> int:
        """What every arm draws in a full batch."""
        return self.batch_size * self.num_generations

    def samples_per_problem(self, arm: Arm) -> int:
        """How many samples a problem gets at once."""
        return arm.samples_per_problem or self.num_generations

    @property
    def samples(self) -> int:
        """What an arm draws that samples as many solutions of each problem as the comparison says.

        The last batch of an epoch is smaller where the batch size does not divide the problems, except in
        mixed batches, which know no epochs.
        """
        if self.references is not None:
            return self.steps * self.samples_per_step
        steps_per_epoch = -(-self.train // self.batch_size)
        epochs, rest = divmod(self.steps, steps_per_epoch)
        return (epochs * self.train + rest * self.batch_size) * self.num_generations

    def samples_per_round(self, arm: Arm) -> int:
        """How many samples of each problem a round draws: its share of the budget, at least one."""
        return max(1, self.samples // (self.train * arm.rounds))

    def remarks(self) -> list[str]:
        """In what the budgets of the arms differ although they should not."""
        told = [
            f"{arm.label} draws {drawn:,} samples, as many of each problem; the budget is {self.samples:,}"
            for arm in self.arms
            if arm.method == "rounds"
            and (drawn := arm.rounds * self.train * self.samples_per_round(arm)) != self.samples
        ]
        others = [arm.label for arm in self.arms if self.samples_per_problem(arm) > self.num_generations]
        if others and self.samples != self.steps * self.samples_per_step:
            fitting = self.train - self.train % self.batch_size
            told.append(
                f"batches of {self.batch_size} do not divide {self.train} training problems, so "
                f"{', '.join(others)} draw up to {self.steps * self.samples_per_step:,} samples and the "
                f"others {self.samples:,}; with --train {fitting} all draw the same"
            )
        return told

    def problems(self, seed: int) -> dict[str, list[Problem]]:
        """The problems of a seed: each has its own, so that a result is not one choice of problems."""
        counts = {"train": self.train, "dev": self.dev, "test": self.test}
        seed = self.seeds[0] if self.same_problems else seed
        if self.data is not None:
            return {split: self._drawn(split, count, seed) for split, count in counts.items()}
        problems: dict[str, list[Problem]] = registry.part("problems", "stories")(
            counts, seed, self.difficulty
        )
        return problems

    def _drawn(self, split: str, count: int, seed: int) -> list[Problem]:
        assert self.data is not None, "the built-in problems are made"
        file = self.data / f"{split}.jsonl"
        problems = load_problems(file, language=self.language)
        if len(problems) < count:
            raise ProblemError(f"{file}: {len(problems):,} problems, {count:,} are needed")
        # The name keeps splits of equal size from drawing the same places.
        return Random(f"{seed}/{file.name}").sample(problems, count)

    @property
    def language(self) -> Language:
        """What solutions are written in and when they are right, by the settings of all arms."""
        return language_of(self.settings)

    def seen_by(self, arm: Arm, train: list[Problem]) -> list[Problem]:
        """The training problems as an arm may know them: the first `references` keep theirs, or all."""
        if self.references is None or arm.sees_all:
            return train
        kept = [problem.id for problem in train if problem.reference is not None][: self.references]
        if len(kept) < self.references:
            raise ProblemError(
                f"references is {self.references}, but {len(kept)} of {len(train)} training problems have one"
            )
        return [problem if problem.id in kept else replace(problem, reference=None) for problem in train]

    def training_config(
        self, arm: Arm, seed: int, directory: Path, of_round: Mapping[str, Any] | None = None
    ) -> SelfSamplingConfig:
        """The settings of an arm's run: what the comparison gives to all, and what is the arm's own."""
        from partway.training.config import config_of

        given = self.learning_rates if isinstance(self.learning_rates, dict) else {}
        own = of_round or {}
        # `arms.OF_THE_COMPARISON` keeps arms from setting most of these; rounds divide the steps.
        common = {
            "preset": "paper",  # an arm that wants other rules says so
            "output_dir": str(directory),
            "model_name_or_path": self.model,
            "max_steps": self.steps,
            # Fewer problems for an arm that draws more samples of each: equal samples per step.
            "per_device_train_batch_size": self.samples_per_step // self.samples_per_problem(arm),
            "num_generations": self.samples_per_problem(arm),
            "learning_rate": given.get(arm.name, self.learning_rate),
            "warmup_steps": min(20, own.get("max_steps", self.steps) // 5),
            "max_completion_length": self.max_completion_length,
            "eval_steps": self.eval_steps,
            "eval_samples": self.dev_samples,
            "metric_for_best_model": self.selects,
            "save_steps": self.eval_steps,
            "save_total_limit": None,  # each may be chosen, also where a signal saved one more
            "logging_steps": 10,
            "seed": seed,
            "report_to": "none",
            "disable_tqdm": True,
            **(FEW_REFERENCES if self.references is not None else {}),
            **self.settings,
        }
        if self.references is not None and arm.settings.get("self_sampling") == "none":
            common["solved_share"] = 1.0  # what has no solution by now never gets one
        try:
            return config_of(common | {**arm.settings, **own})
        except ConfigError as error:
            raise ConfigError(f"arm {arm.name}: {error}") from None

    def rules(self) -> list[str]:
        """How a model is chosen for each table, the same for all arms."""
        largest = self.dev_samples
        drawn = "one sample at T=0.2" if self.selects == "pass@1" else f"{largest} samples at T=0.8"
        rules = [
            f"selected: the checkpoint with the best dev {self.selects} ({drawn}, {self.dev} problems), "
            f"looked at every {self.eval_steps} steps; of equal ones the better at pass@{largest}, then the "
            "later"
        ]
        if any(map(self.tried, self.arms)):
            rates = ", ".join(f"{rate:g}" for rate in self.learning_rates or ())
            rules.append(
                f"learning rate: for every arm the best on dev, by the same rule, of {rates}, each tried for "
                f"{self.trial_steps} steps with seed {self.seeds[0]}; what the trials took is counted"
            )
        if isinstance(self.learning_rates, dict):
            given = ", ".join(f"{name} {rate:g}" for name, rate in self.learning_rates.items())
            rules.append(f"learning rate: {given}; {self.learning_rate:g} for arms that set none themselves")
        if self.same_problems:
            rules.append(f"problems: those of seed {self.seeds[0]} for all seeds")
        if self.measures_all:
            rules += [
                f"last: the checkpoint at step {self.steps:,}, nothing chosen",
                f"best per k: for each pass@k the checkpoint with the best dev pass@k ({largest} samples at "
                f"T=0.8; above k={largest} by dev pass@{largest}); ties as above",
            ]
        if self.references is not None:
            rules.append(
                f"references: {self.references:,} of {self.train:,} training problems keep theirs, the same "
                "for all arms; the others have their answer only"
            )
        methods = dict.fromkeys(arm.method for arm in self.arms)
        temperatures = ", ".join(map(str, self.temperatures))
        told = [RULES[method].format(temperatures=temperatures) for method in methods if method in RULES]
        return [*rules, *self.remarks(), *told]


@dataclass(frozen=True)
class _ExperimentFile:
    """The keys of a comparison's file that say something in another way than `Experiment` does."""

    arms: list[str]
    seeds: int = 3  # how many
    data: str | None = None
    settings: dict[str, Any] | None = None


def read_experiment(path: Path | None, given: Mapping[str, Any]) -> Experiment:
    """The comparison that a file tells, with what is `given` on top; either may be all there is."""
    content = (read_settings(path) if path is not None else {}) | dict(given)
    other_way = {key: content.pop(key) for key in [f.name for f in fields(_ExperimentFile)] if key in content}
    told = checked(other_way, _ExperimentFile, where=file_of(path))
    sizes = checked(content, Experiment, where=file_of(path))
    if "arms" not in told:
        raise ConfigError("no arms to compare; name some with --arms, such as mle,fcs,fcs+pcs, or in a file")
    data, seeds = told.get("data"), told.get("seeds", _ExperimentFile.seeds)
    if data is not None and sizes.get("model") is None:
        raise ConfigError(
            "data needs a model: the built-in one knows the built-in problems only; add --model"
        )
    # A comparison shows more than the demo, whose defaults `Experiment` has.
    usual: dict[str, Any] = {"eval_steps": 50, "measures_all": True}
    if data is not None:
        usual["max_completion_length"] = OWN_LENGTH
    return Experiment(
        arms=load_arms(told["arms"], Path() if path is None else path.parent),
        seeds=tuple(range(seeds)),
        data=None if data is None else Path(data),
        settings=told.get("settings") or {},
        **usual | sizes,
    )
