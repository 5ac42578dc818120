"""Arms: an arm is a way of learning, a YAML file with its settings and their source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from partway.cli.config_files import read_settings
from partway.errors import ConfigError, suggestion
from partway.settings import checked

SHIPPED = Path(__file__).parent / "shipped"

Method = Literal["train", "rounds", "mix", "temperatures", "ensemble", "untrained", "chance"]
OF_ANOTHER = ("mix", "temperatures", "ensemble")  # take the model of another arm
References = Literal["all", "unsolved", "none"]

# What a comparison decides for all of its arms, so that their budgets and selection are the same.
OF_THE_COMPARISON = {
    *("output_dir", "model_name_or_path", "train_file", "eval_file", "seed", "data_seed", "reference_share"),
    *("max_steps", "num_train_epochs", "num_generations"),
    *("per_device_train_batch_size", "effective_batch_size", "gradient_accumulation_steps"),
    *("eval_samples", "eval_k", "eval_temperature", "eval_pass1_samples", "eval_pass1_temperature"),
    *("eval_steps", "save_steps", "metric_for_best_model", "load_best_model_at_end"),
    *("max_completion_length", "early_stopping_patience", "save_total_limit"),
}


@dataclass(frozen=True)
class Arm:
    """A way of learning. `settings` are keys of `partway train`; `of` is the arm whose model it takes.

    `method` is `train`, `rounds` (sample, then train on what is right, several times; the first model samples
    first, or that of the arm `of`), or without training
    `mix` (with the first weights), `temperatures`, `untrained`, `chance` (no model at all); `ensemble` trains
    the arm whose model it takes once more, with another seed, and draws half of the samples from each.
    `samples_per_problem` is how many samples a problem gets at once, if not as many as the comparison says: a
    step then takes so many fewer problems, and every arm draws the same number of samples. An arm that
    `sees_all` learns also the references that the comparison hides from the others. The rest is for rounds:
    how many, whose references are learned too (of all problems, of those without a right sample, of none),
    and how many right samples of a problem are learned at most.
    """

    name: str
    label: str
    source: str = ""
    method: Method = "train"
    of: str | None = None
    samples_per_problem: int | None = None
    sees_all: bool = False
    rounds: int = 1
    references: References = "all"
    most_solutions: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_shared(self.settings, f"arm {self.name}")
        for key in ("samples_per_problem", "rounds", "most_solutions"):
            if (value := getattr(self, key)) is not None and value < 1:
                raise ConfigError(f"arm {self.name}: {key} is {value}, expected at least 1")
        if self.method != "rounds" and (self.method in OF_ANOTHER) != (self.of is not None):
            raise ConfigError(
                f"arm {self.name}: method {self.method} and `of: {self.of}` do not go together; only "
                f"{', '.join(OF_ANOTHER)} and rounds take the model of another arm"
            )

    @property
    def trains(self) -> bool:
        """Whether it has a run of its own."""
        return self.method in ("train", "rounds")


def refuse_shared(settings: Mapping[str, Any], where: str) -> None:
    """Refuse settings that a comparison decides by numbers of its own."""
    if taken := sorted(OF_THE_COMPARISON & settings.keys()):
        raise ConfigError(
            f"{where}: {taken[0]} belongs to the comparison, which gives all arms the same; "
            "leave it out of the settings"
        )


def read_arm(path: Path) -> Arm:
    """The arm in a file, which is called as the file is."""
    content = read_settings(path)
    settings = content.pop("settings", {}) or {}  # checked by the trainer's own config; may be empty
    if "name" in content:
        raise ConfigError(
            f"{path}: name is {content['name']!r:.60}, but an arm has the name of its file; leave it out"
        )
    if not isinstance(settings, dict):
        raise ConfigError(f"{path}: settings is {settings!r:.60}, expected keys of partway train")
    try:
        plain = checked({"name": path.stem, "label": path.stem, **content}, Arm)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return Arm(**plain, settings=settings)


def shipped_arms() -> dict[str, Arm]:
    """The arms that come with the package, by name."""
    return {path.stem: read_arm(path) for path in sorted(SHIPPED.glob("*.yaml"))}


def load_arms(words: Iterable[str], beside: Path = Path()) -> tuple[Arm, ...]:
    """The arms that are named, or that files tell, each after the arm whose model it begins from."""
    shipped = shipped_arms()
    found: dict[str, Arm] = {}
    waiting = [_named(word, shipped, beside) for word in words]
    while waiting:
        arm = waiting.pop(0)
        # An arm that takes another one's model brings that arm along, though nobody named it.
        if arm.of is not None and arm.of not in found:
            waiting = [_named(arm.of, shipped, beside), arm, *waiting]
        elif found.setdefault(arm.name, arm) != arm:  # the same one twice does no harm
            raise ConfigError(f"two different arms are called {arm.name}; rename the file of one")
    return tuple(found.values())


def _named(word: str, shipped: Mapping[str, Arm], beside: Path) -> Arm:
    if word in shipped:
        return shipped[word]
    if word.endswith((".yaml", ".yml")):
        return read_arm(beside / word)
    hint = suggestion(word, shipped) or f"; there are {', '.join(shipped)}, or name a .yaml file"
    raise ConfigError(f"no arm '{word}'{hint}")
