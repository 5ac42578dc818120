"""What an engine is: it gets requests and sampling settings, and answers with samples."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from partway.errors import ConfigError
from partway.sample import Request, Sample

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """Temperature 0 is greedy, `top_p` 1 and `top_k` 0 keep the whole distribution, lengths are in tokens.

    >>> SamplingSettings(temperature=-1)
    Traceback (most recent call last):
    partway.errors.ConfigError: temperature is -1, expected a number of at least 0; try 0.8
    """

    temperature: float = 0.8
    top_p: float = 1.0
    top_k: int = 0
    max_completion_length: int = 256

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise ConfigError(f"temperature is {self.temperature}, expected a number of at least 0; try 0.8")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, expected a number above 0 and up to 1; try 1.0")
        if self.top_k < 0:
            raise ConfigError(f"top_k is {self.top_k}, expected 0 (keep all) or more; try 0")
        if self.max_completion_length < 1:
            raise ConfigError(
                f"max_completion_length is {self.max_completion_length}, expected at least 1 token; try 256"
            )


Asked = tuple[Sequence[Request], SamplingSettings, int]  # one call of `complete`


class Engine(Protocol):
    """Anything that completes beginnings of solutions: P_theta as a sampler.

    A trainer is given one and tells it about the weights it should draw with. An engine of your own is a
    subclass of this one that has `complete`; the other methods do nothing by default.
    """

    works_ahead: bool = True  # whether it can draw while the model learns
    is_shared: bool = False  # whether processes share what it asks, so that they wait and stop together

    @abstractmethod
    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """For every request its distinct samples; their counts sum to the request's count."""

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Draw with these weights from now on; `version` is the training step they are of.

        Called before samples are drawn, also if nothing changed. The weights are learned in place, and may be
        another object than before: distribution over processes wraps or replaces the model.
        """
        return

    def meter(self, seconds: float) -> dict[str, float]:
        """What it did in the last so many seconds, for the run's timings."""
        return {}

    def rest(self) -> None:
        """Remove what training needed, which has ended; the next call begins anew."""
        return

    def close(self) -> None:
        """Give up what is under way, and rest: nothing more is asked."""
        return


class Wrapped(Engine):
    """An engine around another one: what it does not do itself, that one does."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.works_ahead, self.is_shared = engine.works_ahead, engine.is_shared

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """What the other engine answers."""
        return self.engine.complete(requests, settings, seed)

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Hand the weights on."""
        self.engine.update(weights, version)

    def meter(self, seconds: float) -> dict[str, float]:
        """What the other engine did."""
        return self.engine.meter(seconds)

    def rest(self) -> None:
        """Let the other engine rest."""
        self.engine.rest()

    def close(self) -> None:
        """Close the other engine."""
        self.engine.close()


class Metered(Wrapped):
    """An engine that counts the tokens another one draws."""

    tokens = 0

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Sample]]:
        """What the other engine answers."""
        answers = super().complete(requests, settings, seed)
        self.tokens += sum(one.count * len(one.tokens) for samples in answers for one in samples)
        return answers
