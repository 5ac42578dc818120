"""What an engine is asked and what it answers: requests for completions, and draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from partway.models.settings import SamplingSettings
from partway.problem import Problem
from partway.solution import Solution, traced_text

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class Request:
    """`count` independent completions of `prefix`, a beginning of a solution (EMPTY: from scratch).

    `drafts` are solutions that completions may resemble. They can make an engine faster, and change nothing
    about what it draws.
    """

    problem: Problem
    prefix: Solution
    count: int
    drafts: tuple[Solution, ...] = ()


@dataclass(frozen=True, slots=True)
class Draw:
    """A distinct completion and how many of the samples it stands for.

    `text` is what to trace of prefix and completion (`traced_text`). `log_prob` is that of the tokens
    drawn, at temperature 1 and unfiltered; `tokens` is how many, 0 if the engine does not say, and
    `drafted` how many of them the drafts had right. `weights` is the training step whose weights drew it,
    None if they are those trained here as they are or unknown; `endpoint` is the address of the server that
    did.
    """

    completion: str
    text: str
    count: int
    finished: bool
    log_prob: float | None = None
    tokens: int = 0
    drafted: int = 0
    weights: int | None = None
    endpoint: str = ""

    @classmethod
    def of(
        cls,
        prefix: Solution,
        completion: str,
        count: int,
        finished: bool,
        log_prob: float | None = None,
        tokens: int = 0,
        drafted: int = 0,
    ) -> Draw:
        """The draw of `completion` after `prefix`."""
        text = traced_text(prefix.text, completion, finished)
        return cls(completion, text, count, finished, log_prob, tokens, drafted)


class Engine(Protocol):
    """Anything that completes beginnings of solutions: P_theta as a sampler.

    A trainer is given one and tells it about the weights it should draw with.
    """

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Draw]]:
        """For every request its distinct draws; their counts sum to the request's count."""

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Draw with these weights from now on; `version` is the training step they are of.

        Called before samples are drawn, also if nothing changed. The weights are learned in place, and may be
        another object than before: distribution over processes wraps or replaces the model.
        """


@dataclass
class Metered:
    """An engine that counts the tokens another one draws."""

    engine: Engine
    tokens: int = 0

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> list[list[Draw]]:
        """What the other engine answers."""
        answers = self.engine.complete(requests, settings, seed)
        self.tokens += sum(draw.count * draw.tokens for draws in answers for draw in draws)
        return answers

    def update(self, weights: PreTrainedModel, version: int) -> None:
        """Hand the weights on."""
        self.engine.update(weights, version)
