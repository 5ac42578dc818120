"""What to draw from every problem, checked before any work is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from typing import Any

from partway.errors import ConfigError
from partway.execution import PYTHON, Programs
from partway.execution.programs import programs_of
from partway.models.settings import SamplingSettings

USUAL_KS = (1, 5, 10, 20, 50)
PAPER_SETTINGS = SamplingSettings(temperature=0.8)


@dataclass(frozen=True, slots=True)
class Phase:
    """`count` samples of every problem, drawn with one set of settings and one seed."""

    name: str
    count: int
    settings: SamplingSettings
    seed: int


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """The paper's: n samples for pass@k and, drawn apart at a low temperature, one sample for pass@1.

    Without `ks`, k is 1, 5, 10, 20, 50 as far as there are samples, and the number of samples itself.

    >>> EvaluationPlan(samples=20).ks, EvaluationPlan(samples=80).ks
    ((1, 5, 10, 20), (1, 5, 10, 20, 50, 80))
    """

    samples: int = 100
    settings: SamplingSettings = PAPER_SETTINGS
    ks: tuple[int, ...] = ()
    pass1_samples: int = 1
    pass1_temperature: float = 0.2
    seed: int = 0
    programs: Programs = PYTHON

    def __post_init__(self) -> None:
        for name, count in (("samples", self.samples), ("pass1_samples", self.pass1_samples)):
            if count < 0:
                raise ConfigError(f"{name} is {count}, expected 0 or more")
        if self.samples + self.pass1_samples == 0:
            raise ConfigError("samples is 0, expected at least 1; try 100")
        for k in self.ks:
            if not 1 <= k <= self.samples:
                raise ConfigError(
                    f"k is {k}, expected 1 to {self.samples}, the number of samples; draw more samples"
                )
        # Only now that given ones were checked: `(1, 200)` of 100 samples is a mistake, no wish for less.
        ks = self.ks or tuple(k for k in (*USUAL_KS, self.samples) if 0 < k <= self.samples)
        object.__setattr__(self, "ks", tuple(sorted(set(ks))))
        replace(self.settings, temperature=self.pass1_temperature)  # refuses an impossible temperature

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The two kinds of samples, the cheap one first."""
        low = replace(self.settings, temperature=self.pass1_temperature)
        both = (
            Phase("pass1", self.pass1_samples, low, _derived_seed(self.seed, "pass1")),
            Phase("samples", self.samples, self.settings, _derived_seed(self.seed, "samples")),
        )
        return tuple(phase for phase in both if phase.count)

    def to_json(self) -> dict[str, Any]:
        """The plan as summaries record it."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        own |= {"ks": list(self.ks), **asdict(own.pop("settings")), **own.pop("programs").settings()}
        return own

    def __repr__(self) -> str:
        # The digest of an evaluation is made of this text, so it is what the first ones had: another name,
        # and of the programs the answer variable and what is unusual about them.
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "programs"}
        usual = PYTHON.settings() | {"answer_variable": None}
        own |= {key: said for key, said in self.programs.settings().items() if said != usual.get(key)}
        return f"Plan({', '.join(f'{name}={value!r}' for name, value in own.items())})"

    @classmethod
    def from_json(cls, summary: Mapping[str, Any]) -> EvaluationPlan:
        """The plan a summary records."""
        settings = SamplingSettings(**{field.name: summary[field.name] for field in fields(SamplingSettings)})
        made: dict[str, Any] = {
            "settings": settings,
            "ks": tuple(summary["ks"]),
            "programs": programs_of(summary),
        }
        own = {field.name: summary[field.name] for field in fields(cls) if field.name not in made}
        return cls(**own, **made)


def _derived_seed(seed: int, name: str) -> int:
    # Two draws with one seed would share their luck; 63 bits are a positive number everywhere.
    return int.from_bytes(blake2b(f"{seed} {name}".encode(), digest_size=8).digest()) >> 1
