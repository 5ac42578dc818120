"""How completions are drawn, every value stated and none inherited from a model's own defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass

from partway.errors import ConfigError


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
